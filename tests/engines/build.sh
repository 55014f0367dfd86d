#!/usr/bin/env bash
# build.sh WORK: makes what run.sh asks, in WORK, as far as it is not there yet: the OpenTelemetry Collector from its Go
# modules (Go 1.26; 3 minutes), and Python with the packages of requirements.txt. Nothing else of the machine changes.
set -euo pipefail
work=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
export GOPATH="$work/go" CGO_ENABLED=0 GOFLAGS=-mod=mod

collector() {
  local version=0.165.0 providers=1.71.0
  mkdir -p "$work/bin"
  GOBIN="$work/bin" go install "go.opentelemetry.io/collector/cmd/builder@v$version"
  cat > "$work/builder.yaml" <<END
dist: {name: otelcol, output_path: "$work/collector", version: $version, otelcol_version: $version}
receivers: [{gomod: "go.opentelemetry.io/collector/receiver/otlpreceiver v$version"}]
exporters:
  - {gomod: "go.opentelemetry.io/collector/exporter/otlphttpexporter v$version"}
  - {gomod: "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version"}
conf_resolver: {default_uri_scheme: file}
providers: [{gomod: "go.opentelemetry.io/collector/confmap/provider/fileprovider v$providers"}]
END
  "$work/bin/builder" --config "$work/builder.yaml" --skip-get-modules --skip-compilation
  # The builder's own go.mod wants modules that only tests import.
  cat > "$work/collector/go.mod" <<END
module otelcol
go 1.26
require (
	go.opentelemetry.io/collector/receiver/otlpreceiver v$version
	go.opentelemetry.io/collector/exporter/otlphttpexporter v$version
	github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version
	go.opentelemetry.io/collector/confmap/provider/fileprovider v$providers
	go.opentelemetry.io/collector/otelcol v$version
)
END
  (cd "$work/collector" && go build -o "$work/otelcol.new" .)
  mv "$work/otelcol.new" "$work/otelcol"
}

python() {
  rm -rf "$work/python"
  python3 -m venv "$work/python.new"
  "$work/python.new/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  mv "$work/python.new" "$work/python"
}

"$work/otelcol" --help 2> /dev/null | grep -q otelcol || collector
[[ -x $work/python/bin/python3 ]] || python
