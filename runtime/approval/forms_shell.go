package approval

// A line of the tables of forms is: programs and their verbs, a colon, their options
// and operands, as form.read says; "a,b" in a path stands for both. A name with "@"
// stands for what follows its own colon. "name = -v | --version" lists arguments that
// are known as a whole. Lines that begin with a space go on.

// shellForms are the builtins of the shell, and programs that start others.
const shellForms = `
true,false,echo,test,[,[[,exit,return,break,continue: +plain +names
expr,shift,set,shopt,export,declare,typeset,local,readonly: +plain
printf: +first +names text text*
pwd: -LP
cd: +first +names -LP look
pushd,popd: look
read: +first -rs -dpt=text local*
unset: +first -vf var*
wait: +first -n -p=var text*
jobs: -lnprs num*
trap: +first -lp text text*
umask: -S num
type: +first -atpf name*
command: +first -vVp cmd
which: -a name*
hash: -rlt name*
alias unalias times ulimit caller dirs logname = 
ulimit = -a | -n

env: +first -0v -C=look --null --chdir=look cmd
printenv: -0 --null name*
nice: +first -# -n=num --adjustment=num cmd
nohup,builtin,exec,time: +first cmd
time: -pv -f=text --format=text --portability --verbose
setsid: +first -wc --wait cmd
stdbuf: +first -ioe=text --input=text --output=text --error=text cmd
ionice: +first -cn=num --class=num --classdata=num cmd
timeout: +first -v -k=num -s=text --kill-after=num --signal=text --preserve-status --foreground --verbose num cmd
xargs: +first -0rtx -i?text -nLPs=num -IdE=text -a=file --null --no-run-if-empty --verbose --exit --max-args=num --max-procs=num --max-chars=num --delimiter=text --arg-file=file --replace?text --max-lines?num -l?num cmd
sh,bash,dash,ash: +first -euxvfcs -o={pipefail,errexit,nounset,xtrace,noglob,verbose} --norc --noprofile cmd
`
