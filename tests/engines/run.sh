#!/usr/bin/env bash
# run.sh LUASPY LUA WORK: builds the OpenTelemetry Collector from its Go modules in WORK (Go 1.26, curl and python3; some
# minutes the first time), pushes a recording of a Lua program, and sends it as JSON; compares what the Collector wrote
# to its file with the folded stacks of the same recording. The Collector listens on loopback only and is ended at the end.
# A command of its own: CI has Debian's packages alone.
set -euo pipefail
luaspy=$(realpath "$1") lua=$(realpath "$2")
mkdir -p "$3"
work=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
version=0.165.0 providers=1.71.0
export GOPATH="$work/go" CGO_ENABLED=0

build() {
  mkdir -p "$work/bin"
  GOBIN="$work/bin" go install "go.opentelemetry.io/collector/cmd/builder@v$version"
  cat > "$work/builder.yaml" <<END
dist: {name: otelcol, output_path: "$work/collector", version: $version, otelcol_version: $version}
receivers: [{gomod: "go.opentelemetry.io/collector/receiver/otlpreceiver v$version"}]
exporters: [{gomod: "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version"}]
providers: [{gomod: "go.opentelemetry.io/collector/confmap/provider/fileprovider v$providers"}]
END
  "$work/bin/builder" --config "$work/builder.yaml" --skip-get-modules --skip-compilation
  # The builder's own go.mod wants modules that only tests import.
  cat > "$work/collector/go.mod" <<END
module otelcol
go 1.26
require (
	go.opentelemetry.io/collector/receiver/otlpreceiver v$version
	github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version
	go.opentelemetry.io/collector/confmap/provider/fileprovider v$providers
	go.opentelemetry.io/collector/otelcol v$version
)
END
  (cd "$work/collector" && go build -mod=mod -o "$work/otelcol.new" .)
  mv "$work/otelcol.new" "$work/otelcol"
}
[[ -x $work/otelcol ]] || build

cd "$work"
rm -f received.json collector.log
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > collector.yaml <<END
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:$port"}}}}
exporters: {file: {path: "$work/received.json"}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [file]}}
END
./otelcol --config collector.yaml --feature-gates=+service.profilesSupport > collector.log 2>&1 &
collector=$!
end() { kill "$collector" 2> /dev/null && wait "$collector" || true; }
trap end EXIT
until grep -q 'Everything is ready' collector.log; do
  kill -0 "$collector" || { cat collector.log; exit 1; }
done

# send FILE TYPE
send() {
  curl --silent --show-error --fail --output /dev/null -H "Content-Type: $2" -H 'OTLP-Profiles-Development-Version: 1' \
    --data-binary "@$1" "http://127.0.0.1:$port/v1development/profiles"
}
"$luaspy" record -r 500 -o program.luaspy -- "$lua" "$here/program.lua" > /dev/null
"$luaspy" report -f folded -o program.folded program.luaspy
"$luaspy" report -f otlp-json -o program.otlp.json program.luaspy
"$luaspy" push program.luaspy --to "http://127.0.0.1:$port" --service shop
send program.otlp.json application/json
end  # it writes what it has
trap - EXIT
python3 "$here/check.py" received.json program.folded 2
