package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A fake program prints what is in the file of its name and first words, notes
// that it was called, and ends with 3 if there is no such file. It saves a plan where
// it is told to.
const fake = `#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
for w; do
	case $w in -out=*) echo a plan > "${w#-out=}" ;; esac
done
for name in "$(basename "$0")-$1-$2" "$(basename "$0")-$1"; do
	[ -f "$ANSWERS/$name" ] && { cat "$ANSWERS/$name"; [ -f "$ANSWERS/$name.exit" ] && exit "$(cat "$ANSWERS/$name.exit")"; exit 0; }
done
echo "no answer" >&2
exit 3
`

const planJSON = `{"format_version":"1.2","terraform_version":"1.9.0","resource_changes":[
{"address":"aws_instance.new","mode":"managed","change":{"actions":["create"],"before":null,"after":{"password":"hunter2"}}},
{"address":"aws_instance.same","change":{"actions":["no-op"]}},{"address":"data.aws_ami.x","mode":"data","change":{"actions":["read"]}},
{"address":"aws_subnet.a","change":{"actions":["update"]}},{"address":"module.db.aws_db_instance.main","change":{"actions":["delete","create"]}},
{"address":"aws_s3_bucket.logs[\"x\"]","change":{"actions":["delete"]}},{"address":"aws_eip.x","change":{"actions":["forget"]}}],"output_changes":{}}`

const diffText = `diff -u -N /tmp/LIVE-1/apps.v1.Deployment.shop.api /tmp/MERGED-2/apps.v1.Deployment.shop.api
--- /tmp/LIVE-1/apps.v1.Deployment.shop.api
+++ /tmp/MERGED-2/apps.v1.Deployment.shop.api
@@ -1,3 +1,3 @@
-  replicas: 1
+  replicas: 2
@@ -10,3 +10,3 @@
-a
+b
diff -u -N /tmp/LIVE-1/v1.ConfigMap.shop.new /tmp/MERGED-2/v1.ConfigMap.shop.new
--- /tmp/LIVE-1/v1.ConfigMap.shop.new
+++ /tmp/MERGED-2/v1.ConfigMap.shop.new
@@ -0,0 +1,5 @@
+kind: ConfigMap
`

func manifest(objects ...string) string {
	var b strings.Builder
	for _, o := range objects {
		kind, rest, _ := strings.Cut(o, "/")
		name, spec, _ := strings.Cut(rest, "=")
		fmt.Fprintf(&b, "---\n# Source: chart/templates/x.yaml\napiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n  labels:\n    name: other\nspec: %s\n", kind, name, spec)
	}
	return b.String()
}

// at makes a place with fake programs.
func at(t *testing.T, mode approval.Mode, answers map[string]string) (*Previewer, string, func() string) {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"terraform", "tofu", "kubectl", "helm"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(fake), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range answers {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(bin, "log")
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: dir, Env: map[string]string{
		"PATH": bin + ":" + os.Getenv("PATH"), "ANSWERS": bin, "LOG": log,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	place := approval.Place{Provider: "acme", Disposable: true}
	p := &Previewer{Sandbox: sb, Place: place, Approver: approval.Policy{Mode: mode, Context: approval.Context{Place: place, Dir: dir, Workspace: dir}}}
	return p, dir, func() string { data, _ := os.ReadFile(log); return string(data) }
}

func (p *Previewer) of(t *testing.T, dir, line string) *approval.Change {
	t.Helper()
	return p.Preview(t.Context(), tool.Plan{Effect: tool.Runs, Command: line, Path: dir})
}

func TestTerraform(t *testing.T) {
	p, dir, log := at(t, approval.Smart, map[string]string{"terraform-show": planJSON, "terraform--chdir=infra": planJSON})
	os.MkdirAll(filepath.Join(dir, "infra"), 0o755)
	for _, f := range []string{"plan.bin", "infra/plan.bin"} {
		os.WriteFile(filepath.Join(dir, f), []byte("a plan"), 0o644)
	}
	want := "would change: 1 to add, 2 to change, 1 to replace, 1 to destroy: destroy aws_s3_bucket.logs[\"x\"], replace module.db.aws_db_instance.main, change aws_subnet.a, change aws_eip.x (forget), add aws_instance.new"
	for _, line := range []string{"terraform apply plan.bin", "terraform apply -auto-approve -lock-timeout 5s 'plan.bin' 2>&1 | tail -5", "cd infra && terraform apply plan.bin"} {
		c := p.of(t, dir, line)
		if c == nil || !c.Known || c.String() != want || len(c.SHA256) != 64 {
			t.Fatalf("%s: %+v", line, c)
		}
		if err := p.Same(t.Context(), c); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	c := p.of(t, dir, "TF_WORKSPACE=prod terraform -chdir=infra apply plan.bin")
	if c.File != filepath.Join(dir, "infra/plan.bin") || c.Names["workspace"] != "prod" || c.Names["directory"] != "infra" {
		t.Errorf("got %+v", c)
	}
	if strings.Contains(log(), " apply") {
		t.Errorf("it acted:\n%s", log())
	}
	c = p.of(t, dir, "terraform apply plan.bin")
	os.WriteFile(filepath.Join(dir, "plan.bin"), []byte("another plan"), 0o644)
	if err := p.Same(t.Context(), c); !errors.Is(err, ErrChanged) {
		t.Errorf("a plan that was exchanged is %v", err)
	}
	os.Remove(filepath.Join(dir, "plan.bin"))
	if err := p.Same(t.Context(), c); !errors.Is(err, ErrChanged) {
		t.Errorf("a plan that is gone is %v", err)
	}
}

// A command that would make its own plan has it made, shown and applied: that plan
// and no other.
func TestTerraformMakesThePlanThatIsShown(t *testing.T) {
	p, dir, log := at(t, approval.Smart, map[string]string{
		"terraform-plan": "", "terraform-show": planJSON, "terraform--chdir=infra": planJSON, "tofu-plan": "", "tofu-show": planJSON,
	})
	os.MkdirAll(filepath.Join(dir, "infra"), 0o755)
	for _, row := range []struct{ line, makes, runs string }{
		{"terraform apply -auto-approve", "terraform plan -out=F -input=false -no-color", "terraform apply F"},
		{"cd infra && TF_WORKSPACE=dev terraform apply -auto-approve -var 'a=b c' -lock=false 2>&1 | tail -5", "terraform plan -out=F -input=false -no-color -var a=b c -lock=false",
			"cd infra && TF_WORKSPACE=dev terraform apply '-lock=false' F 2>&1 | tail -5"},
		{"tofu destroy -auto-approve -target=x.y", "tofu plan -out=F -input=false -no-color -destroy -target=x.y", "tofu apply F"},
		{"terraform -chdir=infra apply", "terraform -chdir=infra plan -out=F -input=false -no-color", "terraform '-chdir=infra' apply F"},
	} {
		c := p.of(t, dir, row.line)
		if c == nil || !c.Known || c.Added != 1 || len(c.SHA256) != 64 {
			t.Fatalf("%s: got %+v", row.line, c)
		}
		if got := strings.ReplaceAll(c.Command, c.File, "F"); got != row.runs {
			t.Errorf("%s: runs %q, want %q", row.line, got, row.runs)
		}
		if got := strings.ReplaceAll(log(), c.File, "F"); !strings.Contains(got, row.makes+"\n") || strings.Contains(got, " apply") {
			t.Errorf("%s: it was asked\n%s\nwant %q", row.line, got, row.makes)
		}
		if info, err := os.Stat(filepath.Dir(c.File)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: the plan lies in %v, %v", row.line, info, err)
		}
		if err := p.Same(t.Context(), c); err != nil {
			t.Errorf("%s: %v", row.line, err)
		}
		folder := c.Folder
		p.Forget(t.Context(), c)
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the plan is left in %s: %v", row.line, folder, err)
		}
	}
}

// A plan that cannot be made is not shown, and nothing of it is left.
func TestTerraformCannotMakeThePlan(t *testing.T) {
	p, dir, _ := at(t, approval.Smart, map[string]string{"terraform-plan": "no credentials", "terraform-plan.exit": "1"})
	c := p.of(t, dir, "terraform apply -auto-approve")
	if c == nil || c.Known || c.Command != "" || !strings.Contains(c.Problem, "terraform plan ended with 1") {
		t.Errorf("got %+v", c)
	}
	p.Place, p.Approver = approval.Place{Host: true}, approval.Policy{Mode: approval.Smart, Context: approval.Context{Dir: dir, Workspace: dir, Place: approval.Place{Host: true}}}
	c = p.of(t, dir, "terraform apply -auto-approve")
	if c == nil || c.Known || !strings.Contains(c.Problem, "terraform plan would tell, but itself needs approval") || c.Folder != "" {
		t.Errorf("got %+v", c)
	}
}

// What cannot be shown is said, and nothing is looked at.
func TestWhatIsNotShown(t *testing.T) {
	p, dir, log := at(t, approval.Smart, map[string]string{"terraform-show": planJSON, "kubectl-diff": ""})
	os.WriteFile(filepath.Join(dir, "plan.bin"), []byte("a plan"), 0o644)
	for _, row := range []struct{ line, problem string }{
		{"terraform apply -auto-approve -backup-to=x", "makes its own plan with -backup-to"},
		{"terraform destroy other", "more than one plan"},
		{"terraform apply none.bin", "cannot be read"},
		{"terraform apply a b", "more than one plan"},
		{"terraform plan -out=plan.bin && terraform apply plan.bin", "does more than this"},
		{"cp other plan.bin; terraform apply plan.bin", "does more than this"},
		{"terraform apply plan.bin & cp other plan.bin", "does more than this"},
		{"cat other > plan.bin && terraform apply plan.bin", "does more than this"},
		{"terraform apply plan.bin; terraform apply plan.bin", "does more than this"},
		{"if true; then terraform apply plan.bin; fi", "does more than this"},
		{"true || terraform apply plan.bin", "does more than this"},
		{"terraform apply plan.bin | tee $(cp other plan.bin)", "does more than this"},
		{"terraform apply $PLAN", "only known when it runs"},
		{"terraform apply *.bin", "only known when it runs"},
		{"sudo terraform apply plan.bin", "by way of sudo"},
		{"cat x.yaml | kubectl apply -f -", "does more than this"},
		{"kubectl apply -f -", "standard input"},
		{"helm upgrade api ./chart --reuse-values", "only the upgrade itself has"},
		{"helm upgrade api", "does not name"},
	} {
		c := p.of(t, dir, row.line)
		if c == nil || c.Known || !strings.Contains(c.Problem, row.problem) || !strings.HasPrefix(c.String(), "would change: not known; ") {
			t.Errorf("%s: got %+v, want %q", row.line, c, row.problem)
		}
	}
	if log() != "" {
		t.Errorf("something was run:\n%s", log())
	}
	for _, line := range []string{
		"terraform plan", "terraform show plan.bin", "echo terraform apply", "kubectl get pods", "kubectl apply -f x --dry-run=client", "kubectl delete pod x --dry-run=server",
		"helm upgrade api chart --dry-run", "helm list", "kubectl apply view-last-applied -f x", "terraform apply -help", "make apply", "", "'",
	} {
		if c := p.of(t, dir, line); c != nil {
			t.Errorf("%s: %+v", line, c)
		}
	}
}

func TestKubectl(t *testing.T) {
	p, dir, log := at(t, approval.Smart, map[string]string{
		"kubectl---context": diffText, "kubectl---context.exit": "1", "kubectl-get-pod": "pod/api\npod/web\n", "kubectl-diff": "",
	})
	c := p.of(t, dir, "kubectl --context staging apply -n shop -f k8s/ --wait --timeout 5m")
	if !c.Known || c.String() != "would change: 1 to add, 1 to change, 0 to replace, 0 to destroy; context staging; namespace shop: change apps.v1.Deployment.shop.api, add v1.ConfigMap.shop.new" {
		t.Errorf("got %s", c)
	}
	if c := p.of(t, dir, "kubectl apply -f same.yaml"); !c.Known || c.Changed != 0 {
		t.Errorf("nothing to change is %s", c)
	}
	if c := p.of(t, dir, "kubectl delete pod -l app=shop --grace-period 0 --force"); !c.Known || c.Destroyed != 2 || c.Items[0].Name != "pod/api" {
		t.Errorf("got %s", c)
	}
	want := "kubectl --context staging -n shop diff -f k8s/\nkubectl diff -f same.yaml\nkubectl get pod -l app=shop --ignore-not-found -o name\n"
	if log() != want {
		t.Errorf("asked\n%swant\n%s", log(), want)
	}
	if c := p.of(t, dir, "kubectl --context acme-staging delete secret db"); c.Known || !strings.Contains(c.Problem, "kubectl get would tell, but itself needs approval") {
		t.Errorf("got %s", c)
	}
	if c := p.of(t, dir, "kubectl delete secret db"); c.Known || !strings.Contains(c.Problem, "itself needs approval: it ") {
		t.Errorf("got %s", c)
	}
}

func TestHelm(t *testing.T) {
	p, dir, log := at(t, approval.Yolo, map[string]string{
		"helm-get-manifest": manifest("Deployment/api=1", "Service/api=1", "Secret/old=1"), "helm-template": manifest("Deployment/api=2", "Service/api=1", "Ingress/api=1"),
	})
	c := p.of(t, dir, "helm upgrade --install api ./chart --set a=b --wait --timeout 5m")
	if !c.Known || c.String() != "would change: 1 to add, 1 to change, 0 to replace, 1 to destroy; release api: destroy Secret old, change Deployment api, add Ingress api" {
		t.Errorf("got %s", c)
	}
	if c := p.of(t, dir, "helm uninstall api"); !c.Known || c.Destroyed != 3 {
		t.Errorf("got %s", c)
	}
	if !strings.Contains(log(), "helm template api ./chart --no-hooks --is-upgrade --set a=b\n") {
		t.Errorf("asked %s", log())
	}
	// A release's manifest may hold secrets, so looking at it needs a person.
	p, dir, log = at(t, approval.Smart, nil)
	if c := p.of(t, dir, "helm uninstall api"); c.Known || !strings.Contains(c.Problem, "itself needs approval: it ") || log() != "" {
		t.Errorf("got %s, ran %s", c, log())
	}
}

func TestLookingIsBounded(t *testing.T) {
	long := strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(&long, "pod/p%d\n", i)
	}
	p, dir, _ := at(t, approval.Smart, map[string]string{"kubectl-get": long.String(), "terraform-show": "no JSON", "tofu-show": `{"format_version":"9.0"}`})
	os.WriteFile(filepath.Join(dir, "p"), nil, 0o644)
	if c := p.of(t, dir, "kubectl delete pod -l a=b"); len(c.Items) != itemsMax || c.More != 80 || c.Destroyed != 100 {
		t.Errorf("got %+v", c)
	}
	if c := p.of(t, dir, "terraform apply p"); c.Known || !strings.Contains(c.Problem, "not a plan") {
		t.Errorf("got %s", c)
	}
	if c := p.of(t, dir, "tofu apply p"); c.Known || !strings.Contains(c.Problem, `format "9.0"`) {
		t.Errorf("got %s", c)
	}
	if c := p.of(t, dir, "kubectl apply -f x"); c.Known || !strings.Contains(c.Problem, "kubectl diff ended with 3: no answer") {
		t.Errorf("got %s", c)
	}
	p.Approver = slow{}
	p.Within = 50 * time.Millisecond
	if c := p.of(t, dir, "kubectl apply -f x"); c.Known || !strings.Contains(c.Problem, "longer than 50ms") {
		t.Errorf("got %s", c)
	}
}

// slow is an approver that waits until it may not wait any more.
type slow struct{}

func (slow) Approve(ctx context.Context, _ approval.Request) (approval.Decision, error) {
	<-ctx.Done()
	return approval.Decision{}, ctx.Err()
}

func FuzzFind(f *testing.F) {
	f.Add("cd a && TF_X=1 terraform -chdir=b apply p | cat")
	f.Add("kubectl -n x delete pod --all")
	f.Add("helm -n")
	f.Fuzz(func(t *testing.T, line string) { find(line, "/w") })
}
