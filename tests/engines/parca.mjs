// parca.mjs WORK: reads the JSON of WriteRaw from standard input by the types that Parca publishes (npm: @parca/client), which refuse
// what they do not know, and prints the same message in protobuf's wire format, in base64.
import { readFileSync } from "node:fs";
import { register } from "node:module";
import { pathToFileURL } from "node:url";
// The package imports its files without their ending, as only bundlers find them.
register("data:text/javascript," + encodeURIComponent(`export const resolve = (name, context, next) =>
  next(name.startsWith(".") && !name.endsWith(".js") ? name + ".js" : name, context);`));
const types = "node_modules/@parca/client/dist/parca/profilestore/v1alpha1/profilestore.js";
const { WriteRawRequest } = await import(pathToFileURL(process.argv[2] + "/" + types));
const request = WriteRawRequest.fromJson(JSON.parse(readFileSync(0, "utf-8")), { ignoreUnknownFields: false });
process.stdout.write(Buffer.from(WriteRawRequest.toBinary(request)).toString("base64"));
