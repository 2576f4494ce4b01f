# talkops: build, try, test.
#   make demo    build bin/talkops and watch it do a real job, without a key
#   make test    all tests that need Go alone
#   make check   what every commit must pass
#   make ci      everything

GO ?= go
export CGO_ENABLED ?= 0

.PHONY: build demo test check fmt vet staticcheck race cross test-vendors bench ci clean

build:
	$(GO) build -trimpath -o bin/talkops ./cmd/talkops

test:
	$(GO) test ./...

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }

vet:
	$(GO) vet ./...

cross:
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...

staticcheck:
	$(GO) tool staticcheck ./...

check: fmt vet cross staticcheck test

race:
	CGO_ENABLED=1 $(GO) test -race ./...

ci: check race

clean:
	rm -rf bin build
