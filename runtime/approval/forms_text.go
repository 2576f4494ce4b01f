package approval

// textForms are programs that print what they are given, or what is in files.
const textForms = `
cat: +names -AbeEnstTuv --show-all --number --number-nonblank --show-ends --squeeze-blank --show-tabs --show-nonprinting file*
tac: +names -br -s=text --before --regex --separator=text file*
rev: +names file*
head: +names -#qvz -nc=num --lines=num --bytes=num --quiet --silent --verbose --zero-terminated file*
tail: +names -#fFqrvz -ncsb=num --lines=num --bytes=num --follow --retry --quiet --silent --verbose --pid=num --sleep-interval=num --zero-terminated file*
wc: +names -cmlLw --bytes --chars --lines --max-line-length --words --total=text file*
cut: +names -nsz -bcdf=text --bytes=text --characters=text --delimiter=text --fields=text --complement --only-delimited --output-delimiter=text --zero-terminated file*
tr: -cCdst --complement --delete --squeeze-repeats --truncate-set1 text text
nl: +names -p -bdfhilnsvw=text --body-numbering=text --number-format=text --number-separator=text --number-width=num --starting-line-number=num file*
fold: -bs -w=num --bytes --spaces --width=num file*
fmt: -cstu -pwg=text --prefix=text --split-only --uniform-spacing --width=num --goal=num file*
expand: -i -t=text --initial --tabs=text file*
unexpand: -a -t=text --all --first-only --tabs=text file*
column: -txeLJ -scoNHRTEW=text --table --separator=text --output-separator=text --json --table-columns=text --table-name=text file*
join: -iz -aetv12oj=text --ignore-case --check-order --nocheck-order --header --zero-terminated file file
paste: -sz -d=text --delimiters=text --serial --zero-terminated file*
comm: -123iz --check-order --nocheck-order --output-delimiter=text --total --zero-terminated file file
cmp: -bls -in=num --print-bytes --verbose --quiet --silent --ignore-initial=num --bytes=num file file
diff,colordiff: +apart -#qsrNaiEZbwBtTpyudce -U?num -C?num -IxWL=text --brief --report-identical-files --recursive --new-file --text --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space
 --ignore-blank-lines --expand-tabs --side-by-side --unified?num --context?num --color?text --minimal --exclude=text --label=text --strip-trailing-cr --suppress-common-lines --show-c-function --no-dereference --ignore-matching-lines=text --width=num file file
od: -abcdfhiloswxvB -ANjt=text --address-radix=text --skip-bytes=num --read-bytes=num --format=text file*
hexdump: -bcCdovx -ns=num --canonical --no-squeezing --length=num --skip=num file*
xxd: +words -a -b -d -e -E -i -p -ps -plain -u -C -l=num -len=num -s=num -seek=num -skip=num -c=num -cols=num -g=num -groupsize=num -o=num -n=text file
strings: -afow -nte=text --all --data --print-file-name --bytes=num --radix=text --encoding=text file*
base64,base32: -dDi -w=num --decode --ignore-garbage --wrap=num file*
md5sum,sha1sum,sha224sum,sha256sum,sha384sum,sha512sum,b2sum: +names -bctwz --binary --check --text --tag --quiet --status --strict --warn --zero --ignore-missing file*
cksum: +names -cz -al=text --algorithm=text --check --length=num --tag --untagged --quiet --status --strict --warn --zero --ignore-missing --base64 --raw file*
shasum: +names -bctUqsw0 -a=num --algorithm=num --binary --check --text --tag --quiet --status --strict --warn file*
sum: +names -rs --sysv file*
md5: +names -pqrx -s=text file*
zcat,bzcat,xzcat,zstdcat: -f file*
seq: -w -fs=text --equal-width --format=text --separator=text num*
factor: num*
yes: text*
numfmt: -z -d=text --delimiter=text --field=text --format=text --from=text --grouping --header?num --padding=num --round=text --suffix=text --to=text text*
uniq: -cdDiuz -fsw=num --count --repeated --all-repeated?text --skip-fields=num --group?text --ignore-case --skip-chars=num --unique --zero-terminated --check-chars=num file out
sort: +apart -bcCdfghiMmnRrsuVz -ktS=text -o=out --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --sort=text --version-sort
 --check?text --debug --key=text --merge --output=out --stable --buffer-size=num --field-separator=text --parallel=num --unique --zero-terminated file*
grep,egrep,fgrep: +names -#EFGPivywxcLloqsbHhnTZazUIrR -efmABCdD=text -f=file --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp=text --file=file --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color?text
 --colour?text --files-without-match --files-with-matches --max-count=num --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label=text --line-number --initial-tab --null --after-context=num --before-context=num
 --context=num --text --binary-files=text --devices=text --directories=text --exclude=text --exclude-dir=text --include=text --recursive --dereference-recursive --line-buffered --null-data --binary pattern file*
zgrep: -ivnclwEFoh -e=text pattern file*
rg: +apart -#FPSsivwxclLnNobqHhaUuI0p -eTtABCmMjrEdg=text -f=file --fixed-strings --pcre2 --smart-case --case-sensitive --ignore-case --invert-match --word-regexp --line-regexp --count --count-matches --files-with-matches --files-without-match --line-number --no-line-number
 --only-matching --byte-offset --quiet --with-filename --no-filename --text --multiline --multiline-dotall --unrestricted --hidden --files --no-ignore --no-ignore-vcs --follow --regexp=text --file=file --glob=text --iglob=text --type=text --type-not=text --type-list
 --after-context=num --before-context=num --context=num --max-count=num --max-columns=num --threads=num --replace=text --encoding=text --max-depth=num --max-filesize=num --color=text --colors=text --sort=text --sortr=text --heading --no-heading --column
 --no-messages --stats --json --trim --vimgrep --null --null-data --pretty --passthru --one-file-system --crlf --no-config --line-buffered pattern file*
jq,gojq: +apart -nrjaCMSscRe --null-input --raw-input --slurp --compact-output --raw-output --raw-output0 --join-output --ascii-output --sort-keys --color-output --monochrome-output --tab --indent=num --unbuffered --seq --stream --exit-status --arg=pair --argjson=pair jq file*
yq: -CMNPiejnrvyY -oIp=text --colors --no-colors --no-doc --prettyPrint --inplace --in-place --exit-status --null-input --output-format=text --input-format=text --indent=num --tojson --unwrapScalar?text --raw-output --string-interpolation?text --yaml-output --expression=text text*
sed: +apart -nrEsuz -i?text -e=text -l=num --expression=text --quiet --silent --regexp-extended --in-place?text --null-data --separate --unbuffered --posix --debug --sandbox pattern file*
awk,gawk,mawk,nawk: +first -Fv=text --field-separator=text --assign=text --posix --traditional text file*
gofmt: -lwdse look*
shfmt: -lwdsbn -i=num -ln=text text*
`
