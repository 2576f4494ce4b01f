package approval

import (
	"slices"
	"strings"
)

// A spec lists the options of a program that leave it looking.
type spec struct {
	flags  string   // letters without a value; 0 stands for every digit
	valued string   // letters with a value
	long   []string // names without their dashes; "=" at the end: with a value in the next word if not in the same
}

func opts(flags, valued, long string) spec { return spec{flags, valued, strings.Fields(long)} }

// looking are the programs that look, with the options that are known to do no
// more. Every other option, and every shortened one, is asked for.
var looking = map[string]spec{
	"cat":      opts("AbeEnstTuv", "", "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"),
	"head":     opts("qv0z", "nc", "lines= bytes= quiet silent verbose zero-terminated"),
	"tail":     opts("fFqvrz0", "ncsb", "lines= bytes= follow retry quiet silent verbose pid= sleep-interval= max-unchanged-stats= zero-terminated"),
	"wc":       opts("cmlLw", "", "bytes chars lines max-line-length words total="),
	"cut":      opts("nsz", "bcdf", "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated"),
	"tr":       opts("cCdst", "", "complement delete squeeze-repeats truncate-set1"),
	"nl":       opts("p", "bdfhilnsvw", "body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= join-blank-lines= number-format= no-renumber number-separator= starting-line-number= number-width="),
	"tac":      opts("br", "s", "before regex separator="),
	"rev":      opts("", "", ""),
	"fold":     opts("bs", "w", "bytes spaces width="),
	"fmt":      opts("cstu0", "pwg", "crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal="),
	"column":   opts("txneLJ", "scoNHRTEWCO", "table fillrows separator= columns= output-separator= json table-columns= table-name= table-right= table-truncate= table-hide= table-noheadings"),
	"join":     opts("iz", "aetv12oj", "ignore-case check-order nocheck-order header zero-terminated"),
	"paste":    opts("sz", "d", "delimiters= serial zero-terminated"),
	"comm":     opts("123iz", "", "check-order nocheck-order output-delimiter= total zero-terminated"),
	"cmp":      opts("bls", "in", "print-bytes verbose quiet silent ignore-initial= bytes="),
	"diff":     opts("qsrNaiEZbwBtTpyudcen0", "UCIxWL", "brief report-identical-files recursive new-file text ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines expand-tabs side-by-side unified context color minimal exclude= label= strip-trailing-cr suppress-common-lines left-column show-c-function no-dereference normal ignore-matching-lines= width="),
	"od":       opts("abcdfhiloswxvB", "ANjtS", "address-radix= skip-bytes= read-bytes= format= output-duplicates width endian="),
	"hexdump":  opts("bcCdovx", "ns", "canonical no-squeezing length= skip= one-byte-octal one-byte-char two-bytes-decimal two-bytes-octal two-bytes-hex"),
	"strings":  opts("afow", "nteTs", "all data print-file-name bytes= radix= encoding= include-all-whitespace output-separator="),
	"base64":   opts("dDi", "w", "decode ignore-garbage wrap="),
	"expand":   opts("i", "t", "initial tabs="),
	"unexpand": opts("a", "t", "all first-only tabs="),
	"md5sum":   opts("bctwz", "", "binary check text tag quiet status strict warn zero ignore-missing"),
	"cksum":    opts("cbz", "al", "algorithm= check length= tag untagged quiet status strict warn zero ignore-missing base64 raw debug"),
	"shasum":   opts("bctUqsw0", "a", "algorithm= binary check text tag UNIVERSAL quiet status strict warn ignore-missing"),
	"md5":      opts("pqrx", "s", ""),
	"zcat":     opts("fLV", "", "force"),
	"tsort":    opts("", "", ""),
	"look":     opts("adf", "t", "alternative alphanum ignore-case terminate="),
	"grep":     opts("EFGPivywxcLloqsbHhnTZazUIrRu0", "efmABCdDj", "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case no-ignore-case invert-match word-regexp line-regexp count color colour files-without-match files-with-matches max-count= only-matching quiet silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null after-context= before-context= context= text binary-files= devices= directories= exclude= exclude-dir= include= recursive dereference-recursive line-buffered null-data line-regexp binary unix-byte-offsets"),
	"rg":       opts("FPSsivwxclLnNobqHhaUuI0.p", "efgtTABCmMjrEd", "fixed-strings pcre2 smart-case case-sensitive ignore-case invert-match word-regexp line-regexp count count-matches files-with-matches files-without-match line-number no-line-number only-matching byte-offset quiet with-filename no-filename text multiline multiline-dotall unrestricted hidden files no-ignore no-ignore-vcs follow regexp= file= glob= iglob= type= type-not= type-list type-add= after-context= before-context= context= max-count= max-columns= threads= replace= encoding= max-depth= max-filesize= color= colors= sort= sortr= heading no-heading column no-messages stats json trim vimgrep null null-data pretty passthru one-file-system crlf engine= path-separator= no-config line-buffered"),
	"ls":       opts("aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1@eOTWPy", "IwT", "all almost-all author escape block-size= ignore-backups color directory dired classify file-type format= full-time group-directories-first no-group human-readable si dereference dereference-command-line hide= hyperlink indicator-style= inode ignore= kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= time= time-style= tabsize= width= context zero"),
	"stat":     opts("LtflnqrsxF", "c", "dereference file-system cached= format= printf= terse"),
	"file":     opts("bcEhiIkLlnNprsSvz0", "eFmfP", "brief mime mime-type mime-encoding exclude= separator= dereference no-dereference no-buffer preserve-date raw special-files uncompress print0 no-pad keep-going extension apple checking-printout magic-file= files-from= parameter="),
	"du":       opts("0abcDhHklLmPsSxAgnr", "dtBIX", "null all apparent-size bytes total dereference dereference-args human-readable inodes count-links no-dereference separate-dirs si summarize threshold= time time-style= block-size= max-depth= exclude= exclude-from= one-file-system"),
	"df":       opts("aBhHiklPTvmgbntIcx", "tB", "all block-size= human-readable si inodes local no-sync output portability sync total type= print-type exclude-type="),
	"realpath": opts("eEmLPqszs", "", "canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= strip no-symlinks zero"),
	"readlink": opts("femnqsvz", "", "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"),
	"numfmt":   opts("z", "d", "debug delimiter= field= format= from= from-unit= grouping header invalid= padding= round= suffix= to= to-unit= zero-terminated"),
	"uniq":     opts("cdDiuz", "fsw", "count repeated all-repeated skip-fields= group ignore-case skip-chars= unique zero-terminated check-chars="),
	"sort":     opts("bcCdfghiMmnrRsuVz", "oktST", "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse sort= version-sort batch-size= check debug key= merge output= stable buffer-size= field-separator= temporary-directory= parallel= unique zero-terminated"),
	"date":     opts("ujRnI", "dDfrsvzIt", "date= file= iso-8601 rfc-email rfc-2822 rfc-3339= reference= utc universal set= debug"),
	"tree":     opts("adflxqNQpugshDFvtcUrXJiACSn", "LPIoHT", "noreport charset= filelimit= timefmt= inodes device sort= dirsfirst filesfirst si du prune matchdirs ignore-case metafirst gitignore help version"),
	"fd":       opts("HIuLailpsgFq10", "dteEcjSo", "hidden no-ignore no-ignore-vcs unrestricted follow absolute-path ignore-case case-sensitive full-path glob fixed-strings regex max-depth= min-depth= exact-depth= type= extension= exclude= color= threads= size= changed-within= changed-before= owner= max-results= list-details print0 quiet show-errors strip-cwd-prefix prune"),
	"bat":      opts("pnAfud", "lrHm", "plain number language= highlight-line= style= line-range= paging= color= theme= decorations= wrap= terminal-width= tabs= show-all list-languages list-themes no-paging force-colorization"),
	"yq":       opts("CMNPieEjnrv0yY", "oIp", "colors no-colors no-doc prettyPrint inplace exit-status null-input output-format= input-format= indent= tojson unwrapScalar raw-output string-interpolation verbose yaml-output expression= in-place"),
	"jq":       opts("nrjaCMSscRe", "", "null-input raw-input slurp compact-output raw-output raw-output0 join-output ascii-output sort-keys color-output monochrome-output tab indent= unbuffered seq stream stream-errors exit-status arg argjson args jsonargs yaml-input yaml-output"),
	"xxd":      opts("abeEiuC", "clgson", ""),
	"ag":       opts("lah1cinwr", "", "help version color"),
	"jsonlint": opts("lah1cnwr", "", "help version color"),
}

// alike are programs that take the options of another.
var alike = map[string]string{"bzcat": "zcat", "xzcat": "zcat", "zstdcat": "zcat", "sha1sum": "md5sum", "sha224sum": "md5sum", "sha256sum": "md5sum", "sha384sum": "md5sum", "sha512sum": "md5sum", "b2sum": "md5sum",
	"base32": "base64", "egrep": "grep", "fgrep": "grep", "zgrep": "grep", "dir": "ls", "vdir": "ls", "fdfind": "fd", "batcat": "bat", "gojq": "jq", "colordiff": "diff",
	"ack": "ag", "exa": "ag", "eza": "ag", "cloc": "ag", "tokei": "ag", "scc": "ag", "csvlook": "ag", "mdcat": "ag"}

// options reads the arguments of a program that looks, and finds those that may do
// more.
func (c *command) options(name string, args []word) options {
	if of, is := alike[name]; is {
		name = of
	}
	s, ok := looking[name]
	if !ok {
		return split(args)
	}
	var valued []string
	for _, l := range s.valued {
		valued = append(valued, "-"+string(l))
	}
	for _, l := range s.long {
		if l, is := strings.CutSuffix(l, "="); is {
			valued = append(valued, "--"+l)
		}
	}
	o := split(args, valued...)
	for given := range o.given {
		long, is := strings.CutPrefix(given, "--")
		switch {
		case is && (slices.Contains(s.long, long) || slices.Contains(s.long, long+"=") || long == "help" || long == "version"):
		case !is && (strings.Contains(s.flags+s.valued, given[1:]) || strings.Contains(s.flags, "0") && given[1] >= '0' && given[1] <= '9'):
		default:
			c.find(T3, "has an option that may do more than look")
		}
	}
	return o
}

// shortened reports whether an argument is one of the long options, or short for it.
// Options that are whole by themselves are left out.
func shortened(args []word, full []string, whole ...string) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		name, _, _ := strings.Cut(w.text, "=")
		return w.static && len(name) > 3 && strings.HasPrefix(name, "--") && !slices.Contains(whole, name) &&
			slices.ContainsFunc(full, func(f string) bool { return strings.HasPrefix(f, name) })
	})
}
