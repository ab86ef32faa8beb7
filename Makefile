# Thin on purpose: tools/bootstrap.py does the work, also where there is no make.
PYTHON ?= python3
# Further arguments for the verb, e.g. `make test ARGS="tests/sim -x"`.
ARGS ?=

VERBS := train test check slow bench setup clean

.PHONY: $(VERBS)
# Two installations into one .venv would trip over each other.
.NOTPARALLEL:

$(VERBS):
	@$(PYTHON) tools/bootstrap.py $@ $(ARGS)
