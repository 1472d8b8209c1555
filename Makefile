# What one does with Quern's source. 'make' alone lists it.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory

# A Go that is older than go.mod asks switches to the right release by itself,
# except where GOTOOLCHAIN=local forbids it. There the release is named.
GO_ASKED := $(shell sed -n 's/^go //p' go.mod)
GO_LOCAL := $(shell GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//; s/ .*//')
GO_NAMED := $(or $(shell sed -n 's/^toolchain go//p' go.mod),1.27.3)
ifneq ($(shell printf '%s\n' $(GO_ASKED) $(GO_LOCAL) | sort -V | head -n 1),$(GO_ASKED))
export GOTOOLCHAIN := go$(GO_NAMED)
endif

# How long 'make fuzz' stays with each target.
FUZZTIME ?= 10s

# These run without the race detector: guests, which it cannot see into, do
# most of their work, and it makes compiling them ten times slower.
WITHOUT_RACE := jobs|cmd/quern|internal/bench|internal/e2e

.PHONY: help build demo test lint bench fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

build: ## make bin/quern, one static binary
	@CGO_ENABLED=0 go build -trimpath -o bin/quern ./cmd/quern

demo: build ## estimate Pi, then count the words of the Go toolchain's own source
	@mkdir -p out
	bin/quern build -o out/pi.wasm jobs/pi
	bin/quern build -o out/wordcount.wasm jobs/wordcount
	bin/quern run out/pi.wasm
	bin/quern run --allow-read "$$(go env GOROOT)/src" out/wordcount.wasm "$$(go env GOROOT)/src" | tee out/words
	@go run ./internal/bench/reference "$$(go env GOROOT)/src" | diff out/words - && echo "A native program, without Quern, counts the same."

test: lint ## everything that must pass before a change lands
	go test $$(go list ./... | grep -E '/($(WITHOUT_RACE))(/|$$)')
	go test -race $$(go list ./... | grep -vE '/($(WITHOUT_RACE))(/|$$)')

lint: ## gofmt, go vet (also for macOS and Windows), house rules
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then printf 'not gofmt-ed:\n%s\n' "$$unformatted"; exit 1; fi
	go vet ./...
	GOOS=darwin GOARCH=arm64 go vet ./wasmhost/... ./cmd/quern
	GOOS=windows GOARCH=amd64 go vet ./wasmhost/... ./cmd/quern
	go test ./internal/houserules

bench: build ## print a table of measurements
	go run ./internal/bench

fuzz: ## run each fuzz target for FUZZTIME (10s)
	@git ls-files '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed 's/:func / /' | \
	while read -r file target; do \
		echo "== $$(dirname $$file) $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file) </dev/null; \
	done

clean: ## remove what the other targets made
	@rm -rf bin out
