# The command-line tool as an image: one static binary, the roots of trust, and a user without a name. Run:
# docker build --build-arg VERSION="$(git describe --tags --always)" --tag feedscale .
#
# A release builds the stage `release` of it, with the binaries that are in its archives (.goreleaser.yaml).
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:dc9ad6c05acc7a88e5b71bde60a5fe3bd4b9f0db209011711b464107438a8107 AS go

FROM go AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY docs docs
COPY functions functions
COPY pkg pkg
ARG VERSION TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$VERSION" -o /feedscale ./functions/cmd/feedscale

FROM scratch AS base
COPY --from=go /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
# In this order, the folder is that user's: the state of `run` is kept there, and processors.yaml looked for.
USER 65532:65532
WORKDIR /var/lib/feedscale
ENTRYPOINT ["/feedscale"]
CMD ["run"]

FROM base AS release
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/feedscale /feedscale

# The stand-ins for tests (docs/stand-ins.md). Run: docker build --target emulator --tag feedscale-emulator .
FROM base AS emulator-base
EXPOSE 8081 5672 8079
ENTRYPOINT ["/feedscale", "emulate", "--cosmos", ":8081", "--servicebus", ":5672", "--control", ":8079"]
CMD []

FROM emulator-base AS emulator-release
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/feedscale /feedscale

FROM emulator-base AS emulator
COPY --from=build /feedscale /feedscale

FROM base
COPY --from=build /feedscale /feedscale
