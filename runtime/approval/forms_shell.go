package approval

// A line of the tables of forms is: programs and their verbs, a colon, their options
// and operands, as form.read says; "a,b" in a path stands for both. A name with "@"
// stands for what follows its own colon. "name = -v | --version" lists arguments that
// are known as a whole. Lines that begin with a space go on.

// shellForms are the builtins of the shell, and programs that start others.
const shellForms = `
true,false,echo,exit: +plain +names
test,[: +plain
expr: +plain
printf: +first +names text text*
pwd: -LP
cd: +first -LP look
type: +first -atpf name*
command: +first -vVp cmd
which: -a name*
set = -e | -u | -x | -eu | -ex | -eux | -o pipefail | -euo pipefail | -eo pipefail | -euxo pipefail
ulimit = -a | -n

printenv: -0 --null name*
nice: +first -# -n=num --adjustment=num cmd
time: +first -pv -f=text --format=text --portability --verbose cmd
timeout: +first -v -k=num -s=text --kill-after=num --signal=text --preserve-status --foreground --verbose num cmd
xargs: +first -0rtx -i?text -nLPs=num -IdE=text -a=file --null --no-run-if-empty --verbose --exit --max-args=num --max-procs=num --max-chars=num --delimiter=text --arg-file=file --replace?text --max-lines?num -l?num cmd
`
