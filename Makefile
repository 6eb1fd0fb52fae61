# Everything that CI does can be done here. A module is a folder with a go.mod that git knows of; each is built as its
# users build it, without the workspace, but for the linters, and the tests and the programs that they start: Go's cache
# keeps what is compiled without the workspace apart.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export GOWORK := off
# Packages are compiled once, for the linters, the tests and the image: always without cgo, which only the race detector
# needs, and always without the path of the checkout, so that a clean clone finds in Go's cache all that did not change.
export GOFLAGS     := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath
export CGO_ENABLED := 0

modules := $(patsubst %/,%,$(dir $(shell git ls-files go.mod '*/go.mod')))
# The modules whose tests run on real Kafka: the integration module and those that use it.
docker  := $(patsubst %/,%,$(dir $(shell git grep -lE 'sidingkafka/siding/integration( |$$)' -- go.mod '*/go.mod')))
unit    := $(filter-out $(docker),$(modules))

golangci_version := v2.15.0
actionlint_version := v1.7.12
gotestsum_version := v1.13.0
govulncheck_version := v1.9.0
golangci := $(CURDIR)/.cache/golangci-lint-$(golangci_version)/golangci-lint

# Apache Kafka's version for tests: 3.9.2 is tried before a release.
KAFKA ?= 4.3.0

# For those who name no image: the public one, or one that was built here (.ci/kafka-image/build.sh). That was built
# because none can be pulled, and so neither can testcontainers' reaper; and it was built by a local Engine, which
# testcontainers would look for elsewhere if this machine resembled a container.
define own_image
if [ -z "$${SIDING_KAFKA_IMAGE:-}" ]; then \
  export SIDING_KAFKA_IMAGE=apache/kafka:$(KAFKA); \
  if docker image inspect siding/kafka:$(KAFKA) >/dev/null 2>&1; then \
    export SIDING_KAFKA_IMAGE=siding/kafka:$(KAFKA) TESTCONTAINERS_RYUK_DISABLED=true; \
    export TESTCONTAINERS_HOST_OVERRIDE=$${TESTCONTAINERS_HOST_OVERRIDE:-localhost}; \
  fi; \
fi;
endef

FUZZTIME ?= 10s

# Tests with a larger heap collect garbage less often, and take less CPU.
heap := GOGC=1000 GOMEMLIMIT=1GiB

# Packages whose code starts goroutines or has locks: the race detector can find something there. In two rooms of the
# program the goroutines are those of packages redrive and serve.
concurrent := $(addprefix ./,$(sort $(patsubst %/,%,$(dir $(shell git grep -lE '"sync"|"sync/atomic"|\bgo func|\.Go\b' -- '*.go' ':!*_test.go' ':!examples' ':!integration' ':!internal/suite' ':!serve/internal/browser'))) \
  redrive/cmd/redrive/internal/run redrive/cmd/redrive/internal/servecmd))

# The race detector looks at siding's own code, and at franz-go's with FULL=1, which costs much.
only_own := $(foreach p,kfake kgo kgo/internal/... kmsg kbin,-gcflags=github.com/twmb/franz-go/pkg/$(p)=-race=false)

# One go command for the packages of all modules, so that they run side by side: some wait more than they compute.
# Programs without debug information are linked in less time, and the linters vet. The run is recorded as go test -json
# for make house, which reads what each test took, and the CPU seconds of each package:
# $(call tests,name,arguments,environment).
define tests
mkdir -p .cache/tests; rm -f .cache/tests/$(1).cpu; SIDING_ROOT=$(CURDIR) SIDING_CPU=$(CURDIR)/.cache/tests/$(1).cpu \
GOWORK=$(CURDIR)/go.work $(3) go run gotest.tools/gotestsum@$(gotestsum_version) \
  --format pkgname --format-hide-empty-pkg --hide-summary=skipped --jsonfile $(CURDIR)/.cache/tests/$(1).jsonl -- \
  -count=1 -vet=off -ldflags=-w -exec $(CURDIR)/.ci/cpu $(2)
endef

.PHONY: all lint fmt test race left-out reach seeds full steady house costs files integration monitoring browser pictures chromium soak chaos bench peers fuzz vulnerabilities image image-files release release-check tools
all: lint test

# The linters, also of the hosted workflow, and go.mod and go.sum as `go mod tidy` would write them. A file that large is something that was built.
lint: $(golangci)
	@large=$$(git ls-files -z | xargs -0 -I{} find {} -size +512k); \
	  test -z "$$large" || { echo "lint: over 512 KiB, and in git: $$large"; exit 1; }
	@for m in $(modules); do (cd $$m && go mod tidy -diff); done
	@GOWORK=$(CURDIR)/go.work $(golangci) run --allow-parallel-runners $(modules:%=./%/...)
	@go run github.com/rhysd/actionlint/cmd/actionlint@$(actionlint_version) -shellcheck= -pyflakes=

fmt: $(golangci)
	@for m in $(modules); do (cd $$m && $(golangci) fmt --config $(CURDIR)/.golangci.yml ./...); done

# All tests that need nothing but Go, with all cases and seeds, but for combinations of three tables, without the race
# detector. ONLY=TestLane some of them. A test of serve/internal/storage runs the program: it is linked before.
test:
	@(cd redrive/cmd/redrive && GOWORK=$(CURDIR)/go.work go build -ldflags='-s -w' -o $(CURDIR)/.cache/storage/ .); \
	$(call tests,test,-p 4 -timeout 30m $(if $(ONLY),-run '$(ONLY)') $(unit:%=./%/...),$(heap))

# The race detector where goroutines meet: one case a mechanism and two seeds, by package internal/cases, without the
# tests that .ci/left-out names: others reach what they reach. FULL=1 has all.
race:
	@$(call tests,race,-race $(if $(FULL),-tags full,$(only_own)) -p 2 -timeout $(if $(FULL),180m,30m) $(if $(ONLY),-run '$(ONLY)') $(concurrent),CGO_ENABLED=1 $(heap) \
	  $(if $(FULL)$(ONLY),,SIDING_LEFT_OUT=$(CURDIR)/.ci/left-out))

# Chooses the tests that make race leaves out, and writes .ci/left-out.
left-out:
	@GOWORK=$(CURDIR)/go.work $(heap) go run ./internal/reach $(concurrent)

# Which blocks of code all cases of all tests reach and the few of make race do not. Without the race detector, since what
# is reached depends on the cases. It prints them.
reach:
	@mkdir -p .cache/reach; export SIDING_ROOT=$(CURDIR) SIDING_CPU=/dev/null; for tag in few all; do \
	  [ $$tag = few ] && export SIDING_LEFT_OUT=$(CURDIR)/.ci/left-out || unset SIDING_LEFT_OUT; \
	  GOWORK=$(CURDIR)/go.work $(heap) go test -tags $$tag -count=1 -p 2 -timeout 30m -exec $(CURDIR)/.ci/cpu -coverprofile .cache/reach/$$tag.out \
	    -coverpkg $$(echo $(concurrent) | tr ' ' ,) $(concurrent) >.cache/reach/$$tag.log || { cat .cache/reach/$$tag.log; exit 1; }; \
	done; \
	awk 'FNR == 1 { run++; next } { if ($$3 > 0) { if (run == 1) few[$$1] = 1; else all[$$1] = $$2 } } \
	  END { for (b in all) { blocks++; if (!(b in few)) { missing++; lines += all[b]; print "only by all cases: " b " (" all[b] " statements)" } } \
	  printf "%d of %d blocks that all cases reach are reached by the few\n", blocks - missing, blocks }' .cache/reach/few.out .cache/reach/all.out | sort

# The tests with random input, with 200 seeds each; SEEDS=1000 for more.
seeds: export SIDING_SEEDS = $(if $(SEEDS),$(SEEDS),200)
seeds:
	@$(call tests,seeds,-timeout 120m $(addprefix ./,$(sort $(patsubst %/,%,$(dir $(shell git grep -lF cases.Seeds -- '*_test.go' ':!internal/cases'))))))

# The tests of .ci/run, ROUNDS times in all, side by side as there, and beside four busy loops on the same cores. The loops
# run until the end. A line a commit, round and step goes to .cache/steady.tsv; a red one leaves its log. A later call goes
# on with the steps that the commit has no line of, so that a trial may be spread; what is not committed is tried from the
# first round.
STEPS  ?= test race integration monitoring browser
steady:
	@mkdir -p .cache/steady; touch .cache/steady.tsv; commit=$$(git describe --always --dirty --abbrev=12 --exclude='*'); \
	[[ $$commit != *-dirty ]] || sed -i "/^$$commit\t/d" .cache/steady.tsv; \
	loops=; trap 'kill $$loops' EXIT; for _ in 1 2 3 4; do (while :; do :; done) & loops="$$loops $$!"; done; \
	for round in $$(seq $(or $(ROUNDS),20)); do steps=; for step in $(STEPS); do \
	  ! grep -qP "^$$commit\t$$round\t$$step\t" .cache/steady.tsv || continue; \
	  { start=$$SECONDS log=.cache/steady/$$commit-$$step-$$round.log verdict=green; \
	    $(MAKE) --no-print-directory $$step >$$log 2>&1 && rm $$log || verdict=red; \
	    printf '%s\t%d\t%s\t%s\t%d s\n' $$commit $$round $$step $$verdict $$((SECONDS - start)) | tee -a .cache/steady.tsv; } & steps="$$steps $$!"; \
	done; [ -z "$$steps" ] || wait $$steps; done; \
	awk -v commit=$$commit '$$1 == commit { n++; red += $$4 == "red" } END { printf "%s: %d of %d red\n", commit, red, n; exit red > 0 }' .cache/steady.tsv

# What takes hours: all that the quick tests leave out. Nightly, and before a tag.
full:
	$(MAKE) race FULL=1
	$(MAKE) seeds
	SIDING_LONG=1 go test -count=1 -timeout 30m ./consumer/internal/guard
	$(MAKE) integration RACE=1 LONG=1
	$(MAKE) integration KAFKA=3.9.2
	$(MAKE) browser BROKER=kafka
	$(MAKE) chaos RACE=1 RATE=300 SEEDS=6 DURATION=30m
	$(MAKE) chaos BROKER=kafka RATE=400 SEEDS=4 DURATION=20m
	$(MAKE) soak
	$(MAKE) fuzz
	$(MAKE) release-check

# The tests on real Kafka, in containers, a package after the other: make integration KAFKA=3.9.2 takes another version,
# ONLY=name some tests. Without a Docker Engine they are skipped, in CI they fail. They are built without the race
# detector, which takes most of the CPU: make race has it on the embedded broker, and RACE=1 here. The program is linked
# before, as the tests and the image want it: beside the tests that would take their CPU for a minute or two. LONG=1 has
# the tests that take over half a minute by their nature, all areas with the classic group protocol, and all defects that
# the checker of chaos has to find.
integration:
	@$(own_image) export SIDING_KILL_RESULTS=$(CURDIR)/.cache/kills.jsonl SIDING_LONG=$(LONG); \
	(cd redrive/cmd/redrive && GOWORK=$(CURDIR)/go.work go build -ldflags='-s -w' -o $(CURDIR)/.cache/integration/ .); \
	$(call tests,integration,-timeout 60m $(if $(RACE),-race) -p 1 -parallel 8 $(if $(ONLY),-run '$(ONLY)') $(docker:%=./%/...),$(heap) $(if $(RACE),CGO_ENABLED=1))

# A real Prometheus scrapes services and redrive serve while dead letters come: alerts fire and resolve, and the boards'
# queries return data. BROKERS=host:port,… takes a real cluster in place of the embedded broker, and leaves topics there.
monitoring:
	@export SIDING_MONITORING=1 SIDING_MONITORING_BROKERS=$(BROKERS); \
	$(call tests,monitoring,-timeout 30m -run '^TestAlerts_FireAndResolveInPrometheus$$' ./deploy/monitoring,$(heap))

# The console of redrive serve in a real Chromium: axe-core, keys, live pages, and what people do, over the embedded
# broker; BROKER=kafka takes a real one, ONLY=TestFlows some tests. Root installs Chromium where it is missing;
# CHROMIUM=path takes another one.
browser: chromium
	@$(own_image) export SIDING_BROWSER=$(if $(BROKER),$(BROKER),1); \
	$(call tests,browser,-timeout 60m -skip '^TestPictures_' $(if $(ONLY),-run '$(ONLY)') ./serve/internal/browser,$(heap))

# The pictures of the docs, from that incident.
pictures: chromium
	@mkdir -p docs/pictures; cd serve/internal/browser && \
	  SIDING_BROWSER=1 SIDING_PICTURES=$(CURDIR)/docs/pictures go test -count=1 -timeout 5m -run '^TestPictures_' .

chromium:
	@for c in "$${CHROMIUM:-}" chromium chromium-browser google-chrome; do command -v "$$c" >/dev/null && exit; done; \
	echo "installing chromium"; apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null

# Runs of the program, killed at random moments and resumed: 20 on real Kafka, 180 on the embedded broker.
soak:
	@mkdir -p .cache; $(own_image) \
	export SIDING_KILLS=kafka=20,embedded=180 SIDING_KILL_RESULTS=$(CURDIR)/.cache/soak.jsonl; \
	echo "seeds and results: $$SIDING_KILL_RESULTS"; \
	cd integration && go test -count=1 -parallel 8 -timeout 60m -run '^TestARunThatIsKilledGoesOnAndDoublesNothing$$' .; \
	echo "$$(wc -l <$$SIDING_KILL_RESULTS) runs, seeds and results: $$SIDING_KILL_RESULTS"

# Consumers in processes of their own, on brokers that fail; docs/chaos.md has the faults and the rules. SEED=n plays a
# schedule again, DURATION=10m is the time with faults, BROKER=kafka takes three real brokers, ONLY=kill,cut some faults.
# SEEDS=20 makes as many runs, which share the duration, and goes on after one that failed. RACE=1 builds with the race
# detector. A line per run goes to RESULTS.
RESULTS ?= .cache/chaos-results.jsonl
chaos:
	@mkdir -p .cache; $(own_image) \
	(cd integration && GOWORK=$(CURDIR)/go.work $(if $(RACE),CGO_ENABLED=1) go build $(if $(RACE),-race) -o $(CURDIR)/.cache/chaos ./chaos/cmd/chaos); \
	.cache/chaos $(if $(SEED),-seed $(SEED)) $(if $(SEEDS),-seeds $(SEEDS)) $(if $(DURATION),-duration $(DURATION)) $(if $(BROKER),-broker $(BROKER)) \
	  $(if $(ONLY),-only $(ONLY)) $(if $(RATE),-rate $(RATE)) -results $(RESULTS) -commit "$$(git describe --always --dirty --abbrev=12 --exclude='*')"

# Measures of each package and of the recorded runs of tests; fails over a ceiling.
house:
	@go run ./internal/house -race '$(only_own)'

# What a record allocates in siding's code, written anew into internal/costs/ceilings.tsv; make test holds it there.
costs:
	@SIDING_UPDATE=1 go test -count=1 -p 1 -run '_CostsNoMoreThanItsCeilings$$' $(addprefix ./,$(sort $(patsubst %/,%,$(dir $(shell git grep -l costs.Hold -- '*_test.go' ':!internal/costs')))))

# The tables of docs/architecture.md, from the first comments of the files.
files:
	@go run ./internal/files

# Siding and bare franz-go side by side. ONLY=name runs one benchmark, BROKERS=host:port,… uses a real cluster.
# BEFORE=commit compares siding with itself as of that commit, not with bare franz-go.
# ONLY=serve measures redrive serve with a million letters, also in Chromium, beside no other: serve/internal/browser/bench.
ifeq ($(ONLY),serve)
bench: chromium
	@cd serve/internal/browser && go run ./bench
else
bench:
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(if $(BEFORE),git archive $(BEFORE) | tar x -C "$$dir"; (cd "$$dir/integration" && go build -o "$$dir/before" ./bench);) \
	cd integration && go run ./bench $(if $(ONLY),-only $(ONLY)) $(if $(BROKERS),-brokers $(BROKERS)) \
	  $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(BEFORE),-before "$$dir/before")
endif

# Siding and other Go libraries side by side, on the embedded broker or on BROKERS=host:port,…: ONLY=poison takes one
# workload, ROUNDS=5 more rounds. The table is printed, and the plots go to .cache/peers; DOC=1 puts both into
# docs/performance.md.
peers:
	@mkdir -p .cache/peers; cd integration/peers && go run . -out $(CURDIR)/.cache/peers/peers.json \
	  $(if $(ONLY),-only $(ONLY)) $(if $(BROKERS),-brokers $(BROKERS)) $(if $(ROUNDS),-rounds $(ROUNDS)) \
	  $(if $(DOC),-plots ../../docs/pictures -doc ../../docs/performance.md,-plots $(CURDIR)/.cache/peers)

# Each fuzz target for FUZZTIME. It makes an interesting input smaller for a second at most, not for a minute, in
# which it would try nothing else.
fuzz:
	@for m in $(unit); do (cd $$m; \
	  for dir in $$(go list -f '{{.Dir}}' ./...); do \
	    for target in $$(find $$dir -maxdepth 1 -name '*_test.go' -exec sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' {} +); do \
	      echo "fuzz $$dir $$target"; \
	      go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$dir; \
	    done; \
	  done); \
	done

# Known vulnerabilities that the code reaches, of dependencies and of this Go version; asks the Go vulnerability database.
vulnerabilities:
	@for m in $(modules); do echo "vulnerabilities $$m"; (cd $$m && go run golang.org/x/vuln/cmd/govulncheck@$(govulncheck_version) -test ./...); done

# The image of redrive, for a Docker Engine: make image IMAGE=registry/redrive:v1 ARCH=arm64. The program is static; its
# certificates are those of this machine.
IMAGE ?= siding/redrive:dev
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt
image: image-files
	@docker build $(if $(ARCH),--platform linux/$(ARCH)) -f deploy/image/Dockerfile -t $(IMAGE) \
	  --build-arg VERSION="$$(git describe --always --dirty --exclude='*')" --build-arg REVISION="$$(git rev-parse HEAD)" .

image-files:
	@mkdir -p .cache/image; cp -L $(CERTIFICATES) .cache/image/ca-certificates.crt; \
	cd redrive/cmd/redrive && GOOS=linux $(if $(ARCH),GOARCH=$(ARCH)) go build -ldflags='-s -w' -o $(CURDIR)/.cache/image/redrive .

# Two commits and the tags of a release, here: make release VERSION=v0.1.0. Publishes nothing.
release:
	@.ci/release prepare "$(VERSION)"

# A trial of the next release of the last commit, used from outside of this tree as README.md says.
release-check:
	@$(own_image) .ci/release check

tools: $(golangci)

$(golangci):
	GOBIN=$(dir $@) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(golangci_version)
