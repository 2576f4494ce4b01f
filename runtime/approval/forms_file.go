package approval

// fileForms are programs that list files, or write those they name.
const fileForms = `
ls,dir,vdir: +names -aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1@eOTWPy -IwT=text --all --almost-all --author --escape --block-size=text --ignore-backups --color?text --directory --classify?text --file-type --format=text --full-time --group-directories-first --no-group
 --human-readable --si --dereference --hide=text --hyperlink?text --indicator-style=text --inode --ignore=text --kibibytes --numeric-uid-gid --literal --hide-control-chars --quote-name --quoting-style=text --reverse --recursive --size --sort=text --time=text --time-style=text --width=num --zero look*
eza,exa: -1aldhrRTgiS --tree --long --all --level=num look*
tree: -adflxqNQpugshDFvtcrXJiACSnU -LPI=text --noreport --filelimit=num --timefmt=text --inodes --device --sort=text --dirsfirst --filesfirst --du --prune --matchdirs --ignore-case --gitignore look*
stat: +names -LtlnqrsxF -c=text -f?text --dereference --file-system --format=text --printf=text --terse look*
file: +apart -bEhiIkLnNprsv0 -F=text --brief --mime --mime-type --mime-encoding --separator=text --dereference --no-dereference --keep-going --extension file*
du: +names -#abcDhHklLmPsSxAgnr -dtBI=text --null --all --apparent-size --bytes --total --dereference --dereference-args --human-readable --inodes --count-links --no-dereference --separate-dirs --si --summarize --threshold=num --time?text --time-style=text --block-size=text --max-depth=num --exclude=text --one-file-system look*
df: -aBhHiklPTmg -txB=text --all --block-size=text --human-readable --si --inodes --local --portability --total --type=text --print-type --exclude-type=text look*
realpath: +names -eEmLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to=look --relative-base=look --strip --no-symlinks --zero look*
readlink: +names -femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero look*
basename: +names -az -s=text --multiple --suffix=text --zero look*
dirname: +names -z --zero look*
find: +words -H -L -P -name=text -iname=text -path=text -ipath=text -wholename=text -regex=text -iregex=text -regextype=text -type=text -xtype=text -size=text -mtime=text -mmin=text -atime=text -amin=text -ctime=text -cmin=text -newer=look -newermt=text
 -maxdepth=num -mindepth=num -empty -print -print0 -printf=text -ls -prune -quit -not -o -a -or -and -perm=text -user=text -group=text -links=text -inum=text -samefile=look -depth -xdev -mount -readable -writable -executable -true -false -daystart -noleaf -exec=run -execdir=run look*
fd,fdfind: -HIuLlaisgpFq01 -dteEcjS=text -xX=run --exec=run --exec-batch=run --hidden --no-ignore --no-ignore-vcs --unrestricted --follow --absolute-path --ignore-case --case-sensitive --full-path --glob --fixed-strings --regex --max-depth=num --min-depth=num --type=text --extension=text
 --exclude=text --color=text --threads=num --size=text --changed-within=text --changed-before=text --max-results=num --list-details --print0 --quiet --prune text look*
mkdir: -pv -m=mode --parents --verbose --mode=mode out*
touch: -acm -dt=text -r=look --no-create --date=text --reference=look out*
mktemp: -dqu -p=out --directory --quiet --dry-run --suffix=text out
chmod: -Rvcf --recursive --verbose --changes --silent --quiet mode out*
cp: -fnvi --force --no-clobber --interactive --verbose look*
mv: -fnvi --force --no-clobber --interactive --verbose look*
tee: -ai --append --ignore-interrupts out*
tar,bsdtar: +bundle -tvzjJ -f=look --list --verbose --gzip --bzip2 --xz --zstd --auto-compress --file=look --exclude=text --numeric-owner --wildcards look*
unzip: +first -lqtvp file text*
gzip,gunzip,bzip2,bunzip2,xz,unxz,zstd,unzstd: +need:-c,--stdout -cdqv --stdout --decompress --verbose --quiet look*
`
