package approval

import (
	"strings"
	"testing"
)

// What a hook obeys is written only after a question, whatever writes it and by whatever
// name; where none is, and for what none obeys, nothing is different.
func TestWhatAHookObeysIsAskedFor(t *testing.T) {
	const root = "/home/dev/shop"
	swayed := func(name string) string {
		switch {
		case name == root+"/Makefile", name == root+"/ci/check.sh", strings.HasSuffix(name, "/"):
			return "the hook make obeys it"
		}
		return ""
	}
	host := Context{Place: Place{Host: true}, Dir: root, Workspace: root, Home: "/home/dev", Sways: swayed,
		Real: func(name string) string { return strings.Replace(name, "/other.txt", "/Makefile", 1) }}
	for line, asks := range map[string]bool{
		"echo x > Makefile": true, "echo x >> ./Makefile": true, "echo x > " + root + "/Makefile": true, "cd ci && echo x > ../Makefile": true,
		"echo x > other.txt": true, "tee Makefile < a.txt": true, "sed -i s/a/b/ Makefile": true, "sort -o Makefile a.txt": true,
		"cp a.txt Makefile": true, "cp check.sh ci": true, "cp check.sh ci/": true, "cp a.txt ci/check.sh": true, "cp -t ci check.sh": true, "mv a.txt Makefile": true,
		"cp -r new ci": true, "mv new ci": true, "ln Makefile z.txt": true, "ln -s Makefile z.txt": true, "ln -s . z.d": true, "ln a.txt Makefile": true,
		"dd if=a.txt of=Makefile": true, "touch Makefile": true, "chmod +x a.txt": true, "install a.txt b.txt": true, "split a.txt out.": true,
		"yq -i .a=1 Makefile": true, "nice tee Makefile < a.txt": true,
		"echo x > a.txt": false, "sed -i s/a/b/ a.txt": false, "mkdir ci": false, "mkdir -p ci/new": false, "touch a.txt": false, "cat Makefile": false, "ls": false,
	} {
		f, verdict := worst(Classify(line, host), onHost)
		if (verdict == Ask) != asks || asks && f.Tier != T3 {
			t.Errorf("%s: %s, %s %s", line, verdict, f.Tier, f.Reason)
		}
		if asks && f.Reason != "the hook make obeys it" && !strings.Contains(f.Reason, "form") {
			t.Errorf("%s: for the reason that it %s", line, f.Reason)
		}
	}
	found := 0
	for _, f := range Classify("echo x > Makefile", Context{Place: host.Place, Dir: root, Workspace: root, Home: "/home/dev"}) {
		if f.verdict(onHost) != Allow {
			found++
		}
	}
	if found > 0 {
		t.Error("without a hook it asks")
	}
}
