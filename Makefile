# talkops: build, try, test.
#   make demo    build bin/talkops and watch it do a real job, without a key
#   make test    all tests that need Go alone
#   make check   what every commit must pass
#   make ci      everything

GO ?= go
export CGO_ENABLED ?= 0

VENDORS = modal daytona runloop langsmith agentcore vercel e2b

.PHONY: build e2b demo test short check conform-full fmt vet staticcheck race cross chaos test-vendors test-guests bench screenshots ci clean

build:
	$(GO) build -o bin/talkops ./cmd/talkops

# A provider that is used as a module: build/e2b.wasm.
e2b:
	GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -trimpath -ldflags="-s -w" -o build/e2b.wasm ./wasm-providers/e2b

# The model's half of the conversation comes from a recording; every tool call
# really happens, in a scratch copy of the project.
demo: build
	@rm -rf build/demo && mkdir -p build/demo/home && cp -R testdata/projects/shop build/demo/shop
	cd build/demo/shop && TALKOPS_HOME=$(CURDIR)/build/demo/home $(CURDIR)/bin/talkops --yolo \
		--replay $(CURDIR)/testdata/replay/demo.jsonl \
		-p "The check in scripts/check.sh fails. Find out why, fix it, and make sure that it passes." </dev/null
	@echo; echo "What changed in build/demo/shop:"; diff -r -u testdata/projects/shop build/demo/shop | sed -n '/^[-+]/p'
	@sh build/demo/shop/scripts/check.sh

# Most tests wait more than they work, so more packages run than there are cores.
test:
	$(GO) test -p 6 ./...

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }

vet:
	$(GO) vet ./...

cross:
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./sdk/guest/... ./wasm-providers/...
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...

staticcheck:
	$(GO) tool staticcheck ./...

# Without what takes long: make test and make ci have that, too.
short:
	$(GO) test -short -p 6 ./...

check: fmt vet cross staticcheck short

race:
	CGO_ENABLED=1 $(GO) test -race -p 3 -timeout 30m ./...

# The tools' rules and the stories of sandboxes on every cloud, of which check has one,
# and the contract through the wall, for which the race detector is too slow.
conform-full:
	$(GO) test ./cmd -run 'TestTools$$|TestClouds$$' -timeout 30m -full
	$(GO) test ./wasm-providers/daytona ./wasm-providers/runloop ./wasm-providers/e2b ./providers/e2b -run 'ThroughTheWall$$|TestCancelWhileMuchIsWritten$$' -timeout 30m

# Hundreds of sandboxes' lives, in which talkops is killed and clouds fail at any moment;
# make test has a dozen. A failure names the seed that repeats it.
chaos:
	$(GO) test ./cmd -run 'TestChaos$$' -count 1 -timeout 15m -chaos 300

# The vendors' own published clients work against our emulators.
test-vendors:
	.ci/need node=nodejs npm=npm
	set -e; for vendor in $(VENDORS); do sh providers/internal/emulate/vendor-client.sh $$vendor; done

# The kits of every language that providers are written in, with compilers from
# ordinary registries. The Go one is in make test too.
test-guests:
	.ci/guests

# Every line has a ratio: our time over that of the plain way, which the tests name.
bench:
	$(GO) test -run '^$$' -bench . -benchtime 1s -p 1 ./cmd ./providers/... ./runtime/... ./wasm-providers/...

# The pictures of README.md, of the real program in a real terminal.
screenshots:
	.ci/need tmux=tmux
	$(GO) test ./cmd -run 'TestScreens$$' -count 1 -update

ci: check race conform-full chaos test-vendors test-guests demo

clean:
	rm -rf bin build
