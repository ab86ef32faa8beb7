# tools/bootstrap.py does the work, also where there is no make.
PYTHON ?= python3
# Further arguments for the verb, e.g. `make test ARGS="tests/sim -x"`.
ARGS ?=

VERBS := train play test lint check slow slow-part bench wheel docs setup clean

.PHONY: $(VERBS)
# Two verbs must not install into .venv at the same time.
.NOTPARALLEL:

$(VERBS):
	@$(PYTHON) tools/bootstrap.py $@ $(ARGS)
