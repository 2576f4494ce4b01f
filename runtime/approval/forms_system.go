package approval

// systemForms are programs that say how the machine is, and what is installed.
const systemForms = `
whoami,tty,lsmod,arch,users:
groups: name*
id: -ugnGrz --user --group --name --groups --real --zero name*
uname: -asnrvmpio --all --kernel-name --kernel-release --machine --operating-system
nproc: --all --ignore=num
hostname: -sfiI --short --fqdn
date: -uRj -r=file -I?text -dv=text --date=text --reference=file --iso-8601?text --rfc-3339=text --utc --universal --rfc-email date
uptime: -ps --pretty --since
who: -abdHlmqrTtu {am} {i,I}
w: -hsfoiu name
free: -bkmghtlwv -s=num -c=num --human --total --wide --mega --giga
lscpu: -aeJ --json
lsblk: -afmnlpbdtPJr -o=text --all --fs --json --output=text --noheadings look*
lspci: -vnkxtbPm -sd=text
lsusb: -tv -sd=text
vmstat: -asdwtn num num
iostat: -xkmdcthyzN num num
ps: -AaNdeflFHjmMwLyTZcrSuxkv -opCuUgGst=text --forest --no-headers --headers --sort=text --pid=text --user=text --format=text --width=num --cols=num name*
pgrep: -lafcnoviwx -duUgGPst=text --list-name --list-full --full --count --newest --oldest --exact --ignore-case text
pidof: -sx name*
getconf: -a name look
cal: -#yjm3 num num
sleep: num*
clear: -x
tput: name*
getent: {passwd,group,services,protocols,networks,rpc,shells} name*
lsof: -nPtlUaR -i?text -pucs=text name*
ss: -tlnpuaxsieomH460r {state,all,connected,synchronized,bucket,big,established,syn-sent,syn-recv,fin-wait-1,fin-wait-2,time-wait,closed,close-wait,last-ack,listen,listening,closing,sport,dport,=,!=,eq,and,or,not,(,),:22,:53,:80,:443,:3000,:5000,:5432,:6379,:8000,:8080,:8443,:9090}*
netstat: -tlnpuarsieW46
locale: -a -m name
whereis: -bms name*
journalctl: -xefrkHaqlT -b?text -nuSUptg=text -o={short,short-iso,short-precise,cat,json,json-pretty,verbose,with-unit} --since=text --until=text --unit=text --lines=num --output={short,short-iso,short-precise,cat,json,json-pretty,verbose,with-unit} --no-pager --boot?text --follow --reverse --utc --user --system
 --grep=text --priority=text --no-hostname --list-boots --disk-usage --dmesg
dmesg: -THkruxLe --human --ctime --level=name --facility=name --kernel --userspace
@systemctl: --no-pager -laq --full --all --user --system --failed --plain --no-legend --quiet -no=text -t=text --type=text --state=text -p=text --property=text --lines=num --output=text
systemctl: @systemctl
systemctl status,show,list-units,list-unit-files,list-timers,list-dependencies,is-active,is-enabled,is-failed,is-system-running,cat,get-default: @systemctl name*
service: name {status}
hostnamectl timedatectl localectl = | status
mount = | -l
ip: +words -4 -6 -s -d -o -j -p -c -br -brief -details -stats -statistics -json -pretty -color -oneline {a,addr,address,l,link,r,ro,route,n,neigh,neighbor,neighbour,rule} {show,list,ls} name*
ifconfig: -a name
route: -n
sysctl: -n name*
apt: --installed --upgradable -a
apt list,show,search,policy: --installed --upgradable -a --all-versions --names-only -n pkg*
apt-cache policy,show,search,depends,rdepends,madison: -n --names-only --installed pkg*
dpkg: -lLsS --list --listfiles --status --search --print-architecture look*
brew list,info,search,deps,outdated,leaves: -v --versions --formula --cask --installed --json pkg*
apk info,list,search: -v --installed pkg*
make gmake ruby perl php node nodejs bc julia = -v | --version
python python2 python3 deno less pip pip3 uv dc = -V | --version
lua luajit expect = -v
pypy pypy3 Rscript cmake vim nvim emacs nano man pipx gem just nix m4 ghci pwsh = --version
java = -version | --version
tmux = -V
direnv = version | --version
go version:
go help: name
go env: +some {GOPATH,GOROOT,GOOS,GOARCH,GOVERSION,GOMODCACHE,GOCACHE,GOBIN,GOFLAGS,GOMOD,GOWORK,GO111MODULE,GOTOOLCHAIN,CGO_ENABLED}*
go doc: +words -all -src -u -c -short -cmd symbol*
go fmt: +words -n -x name*
go vet: +words -v -n -json -tags=text name*
`
