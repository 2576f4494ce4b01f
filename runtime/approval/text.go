package approval

import (
	"regexp"
	"slices"
	"strings"
)

// A scanner reads a program text of jq, yq or awk token by token. What it does not
// know it refuses: the texts are judged by what they may hold.
type scanner struct {
	text string
	at   int
	last string // the token before
}

func isWord(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// rest is what is left to read.
func (s *scanner) rest() string { return s.text[s.at:] }

// word reads letters, digits and underscores.
func (s *scanner) word(more string) string {
	from := s.at
	for s.at < len(s.text) && (isWord(s.text[s.at]) || strings.IndexByte(more, s.text[s.at]) >= 0) {
		s.at++
	}
	return s.text[from:s.at]
}

// next is the next character that is no space, or 0.
func (s *scanner) next() byte {
	if rest := strings.TrimLeft(s.rest(), " \t\n"); rest != "" {
		return rest[0]
	}
	return 0
}

var jqWords = strings.Fields(`if then elif else end and or not as reduce foreach try catch null true false
	length utf8bytelength keys keys_unsorted values has in map map_values path paths leaf_paths del to_entries from_entries with_entries select empty error recurse add any all flatten range floor ceil round abs fabs sqrt pow log log2 log10 exp
	tostring tonumber toarray type infinite nan isinfinite isnan isnormal sort sort_by group_by min max min_by max_by unique unique_by reverse contains inside startswith endswith ltrimstr rtrimstr trimstr trim ltrim rtrim explode implode split join
	ascii_downcase ascii_upcase while until repeat test match capture scan sub gsub splits tojson fromjson todate fromdate now date dateadd datesub fromdateiso8601 todateiso8601 strptime strftime strflocaltime mktime gmtime localtime
	first last nth limit skip arrays objects iterables booleans numbers strings nulls scalars input inputs debug getpath setpath delpaths pick transpose combinations walk indices index rindex ascii tojson IN INDEX input_line_number`)

var yqWords = strings.Fields(`kind tag style anchor alias line column key parent parents documentIndex document_index di fileIndex file_index fi sort_keys sortKeys with ireduce collect upcase downcase to_yaml from_yaml to_json from_json to_props from_props to_csv to_tsv from_csv from_tsv to_xml from_xml
	head_comment headComment line_comment lineComment foot_comment footComment comments lhs explode shuffle pivot omit filter find format_datetime with_dtf tz split_doc splitDoc to_number to_string array_to_map merge each filename`)

// filters reports whether text is a program of jq, or with more words of yq, that
// shows nothing but what it is given.
func filters(text string, more []string) bool {
	s := &scanner{text: text}
	return s.filter(more, false) && s.at == len(s.text)
}

// filter reads up to the end, or to the parenthesis that ends an interpolation.
func (s *scanner) filter(more []string, inner bool) bool {
	var open []byte
	inPath := ""
	if more != nil {
		inPath = "-"
	}
	for s.at < len(s.text) {
		b := s.text[s.at]
		token := string(b)
		switch {
		case b == ' ' || b == '\t' || b == '\n':
			s.at++
			continue
		case b == '"':
			s.at++
			if !s.quoted(more) {
				return false
			}
		case b == '@':
			s.at++
			if !slices.Contains([]string{"csv", "tsv", "json", "text", "html", "uri", "sh", "base64", "base64d", "yaml", "props", "xml"}, s.word("")) {
				return false
			}
		case b == '$':
			s.at++
			if name := s.word(""); name == "" || name == "ENV" || strings.HasPrefix(name, "__") {
				return false
			}
		case b == '.':
			s.at++
			if s.at < len(s.text) && isWord(s.text[s.at]) {
				s.word(inPath)
			}
		case b >= '0' && b <= '9':
			s.word(".")
		case isWord(b):
			before := s.last
			token = s.word("")
			key := len(open) > 0 && open[len(open)-1] == '{' && (before == "{" || before == ",") && (s.next() == ':' || s.next() == ',' || s.next() == '}')
			if !key && !slices.Contains(jqWords, token) && !slices.Contains(more, token) {
				return false
			}
		case strings.IndexByte("([{", b) >= 0:
			s.at++
			open = append(open, b)
		case strings.IndexByte(")]}", b) >= 0:
			if len(open) == 0 {
				return inner && b == ')'
			}
			if strings.IndexByte("([{", open[len(open)-1]) != strings.IndexByte(")]}", b) {
				return false
			}
			s.at++
			open = open[:len(open)-1]
		case strings.IndexByte("|,:;+-*/%=<>!?", b) >= 0:
			s.at++
		default:
			return false
		}
		s.last = token
	}
	return len(open) == 0 && !inner
}

// quoted reads a string of jq, after its first quote.
func (s *scanner) quoted(more []string) bool {
	for s.at < len(s.text) {
		b := s.text[s.at]
		s.at++
		switch {
		case b == '"':
			return true
		case b == '\\' && strings.HasPrefix(s.rest(), "("):
			s.at++
			in := &scanner{text: s.text, at: s.at}
			if !in.filter(more, true) {
				return false
			}
			s.at = in.at + 1
		case b == '\\':
			if more != nil && s.at < len(s.text) && strings.IndexByte(`"\`, s.text[s.at]) >= 0 {
				return false // versions of yq differ in where the text ends
			}
			s.at++
		}
	}
	return false
}

var awkWords = strings.Fields(`BEGIN END if else while for in do break continue next nextfile exit print printf delete length substr index split sub gsub gensub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper asort asorti strftime systime mktime and or xor lshift rshift compl
	NR NF FNR FS OFS RS ORS FILENAME SUBSEP RSTART RLENGTH RT OFMT CONVFMT FIELDWIDTHS FPAT IGNORECASE`)

// awkRegexp matches a regular expression of which all awks see the same end.
var awkRegexp = regexp.MustCompile(`^/(?:[^\[\]\\/]|\\.|\[\^?(?:[^\[\]\\/]|\[:\w+:\])+\])*/$`)

// awkLooks reports whether text is a program of awk that prints what it reads: fields,
// variables, numbers, texts and regular expressions, compared and printed.
func awkLooks(text string) bool {
	s := &scanner{text: text}
	depth, printing := 0, -1
	for s.at < len(s.text) {
		b := s.text[s.at]
		token := string(b)
		operand := s.last != "" && (isWord(s.last[0]) && !slices.Contains([]string{"print", "printf", "in", "else", "do", "exit", "delete"}, s.last) || s.last == "\"" || s.last == "]" || s.last == ")")
		switch {
		case b == ' ' || b == '\t':
			s.at++
			continue
		case b == '\n':
			s.at++
			if !slices.Contains([]string{",", "&&", "||", "?", ":", "{", "do", "else"}, s.last) && printing >= depth {
				printing = -1
			}
			if slices.Contains([]string{",", "&&", "||", "?", ":"}, s.last) {
				continue
			}
		case b == '"':
			if !s.until('"') {
				return false
			}
		case b == '/' && operand:
			if s.at++; strings.Count(s.text, "/") > 1 {
				return false // it may begin a regular expression, or end one
			}
		case b == '/':
			from := s.at
			if s.last == "++" || s.last == "--" || s.last == "$" || !s.until('/') || !awkRegexp.MatchString(s.text[from:s.at]) {
				return false
			}
			token = "\"" // what follows is as after a text
		case b >= '0' && b <= '9':
			s.word(".")
		case isWord(b):
			token = s.word("")
			listed := slices.Contains(awkWords, token)
			plain := strings.ToLower(token) == token || strings.ToLower(token[1:]) == token[1:]
			if !listed && (!plain || s.next() == '(' || slices.Contains([]string{"getline", "func", "function", "system", "close", "fflush", "eval", "load", "include", "namespace"}, strings.ToLower(token))) {
				return false
			}
			if token == "print" || token == "printf" {
				printing = depth
			}
		case strings.HasPrefix(s.rest(), "||"), strings.HasPrefix(s.rest(), "&&"), strings.HasPrefix(s.rest(), "++"), strings.HasPrefix(s.rest(), "--"):
			token = s.text[s.at : s.at+2]
			s.at += 2
		case strings.IndexByte("([", b) >= 0:
			s.at++
			depth++
		case strings.IndexByte(")]", b) >= 0:
			s.at++
			if depth--; depth < 0 {
				return false
			}
		case b == '>':
			s.at++
			if printing >= depth || strings.HasPrefix(s.rest(), ">") {
				return false // into a file
			}
		case b == ';' || b == '}' || b == '{':
			s.at++
			if printing = -1; depth > 0 && b != ';' {
				return false
			}
		case strings.IndexByte("$,:+-*%^=<!?~.", b) >= 0:
			s.at++
		default:
			return false
		}
		s.last = token
	}
	return depth == 0
}

// until reads a text that ends with the character that it begins with.
func (s *scanner) until(end byte) bool {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			if s.at++; s.at < len(s.text) && s.text[s.at] == '\n' {
				return false
			}
		case '\n':
			return false
		case end:
			s.at++
			return true
		}
	}
	return false
}
