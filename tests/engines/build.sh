#!/usr/bin/env bash
# build.sh WORK: makes what run.sh asks, in WORK, as far as it is not there yet: the OpenTelemetry Collector (3 minutes), Pyroscope and Parca (5 minutes each) and
# google/pprof from their Go modules (Go 1.26), and Python with the packages of requirements.txt. Nothing else of the machine changes.
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

# The last version that is to be had as a module. Its go.mod names its API by a folder that the module has not; the API's version 1.0.0 is that
# of a little later, and has one call more than this Pyroscope, which is answered here.
pyroscope() {
  local version=1.6.0 api=github.com/grafana/pyroscope/api
  local folder=$work/pyroscope-$version
  rm -rf "$folder"
  cp -r "$(cd "$work" && GOFLAGS='' go mod download -json "github.com/grafana/pyroscope@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" "$folder"
  chmod -R u+w "$folder"
  cd "$folder"
  go mod edit -dropreplace "$api" -replace "$api=$api@v1.0.0"
  sed -i 's/^type Service struct {$/&\n\tvcsv1connect.UnimplementedVCSServiceHandler/' pkg/querier/vcs/service.go
  cat >> pkg/frontend/frontend_vcs.go <<END
func (f *Frontend) GetCommits(context.Context, *connect.Request[vcsv1.GetCommitsRequest]) (*connect.Response[vcsv1.GetCommitsResponse], error) {
	return nil, connect.NewError(connect.CodeUnimplemented, nil)
}
END
  # A library of it links to a variable of Go's runtime by name.
  GOWORK=off go build -buildvcs=false -ldflags=-checklinkname=0 -o "$work/pyroscope.new" ./cmd/pyroscope
  mv "$work/pyroscope.new" "$work/pyroscope"
}

# Also the last one that is to be had; a newer one is not. What it shows to people is made by npm, and left out.
parca() {
  local version=0.20.0
  local folder=$work/parca-$version
  rm -rf "$folder"
  cp -r "$(cd "$work" && GOFLAGS='' go mod download -json "github.com/parca-dev/parca@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" "$folder"
  chmod -R u+w "$folder"
  cd "$folder"
  mkdir -p ui/packages/app/web/build
  echo none > ui/packages/app/web/build/index.html
  GOWORK=off go build -buildvcs=false -ldflags=-checklinkname=0 -o "$work/parca.new" ./cmd/parca
  mv "$work/parca.new" "$work/parca"
}

python() {
  rm -rf "$work/python"
  python3 -m venv "$work/python.new"
  "$work/python.new/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  mv "$work/python.new" "$work/python"
}

"$work/otelcol" --help 2> /dev/null | grep -q otelcol || collector
[[ -x $work/python/bin/python3 ]] || python
[[ -x $work/pyroscope ]] || (pyroscope)
[[ -x $work/bin/pprof ]] || GOBIN="$work/bin" go install github.com/google/pprof@v0.0.0-20261105003125-4bf881d7fb0b
[[ -x $work/parca ]] || (parca)
