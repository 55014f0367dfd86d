# luaspy agent as a container image, of a Debian package that cpack has made:
#
#   cmake --build --preset release && (cd build/release && cpack -D CPACK_PACKAGE_DIRECTORY=/tmp/image)
#   docker build -f tools/agent.Dockerfile -t luaspy-agent /tmp/image
#
# docs/fleet.md says how it is run. The static program is no base for it: it cannot load libcurl.
FROM debian:bookworm-slim
COPY luaspy_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libcurl4 /tmp/luaspy_*.deb && rm -rf /var/lib/apt/lists/* /tmp/luaspy_*.deb
ENTRYPOINT ["/usr/bin/luaspy", "agent"]
