package approval

import "testing"

// What a client of a cloud, of containers or of the machine shows may hold logins.
func TestAnswersWithSecrets(t *testing.T) {
	t.Parallel()
	at := Context{Place: Place{Host: true}, Dir: "/w", Workspace: "/w", Home: "/home/me"}
	for _, line := range []string{
		`docker inspect web`, `docker container inspect web`, `docker image inspect x`, `docker inspect -f '{{.Config.Env}}' web`, `docker inspect -f '{{json .}}' web`, `docker inspect --format='{{index . "Config"}}' web`, `docker inspect -f '{{range $k, $v := .Config}}{{$v}}{{end}}' web`,
		`docker inspect -f '{{.Id}}' -f '{{.Args}}' web`, `docker compose config`, `docker top web e`, `docker top web auxe`, `docker container top web e`, `helm status x -o json`, `helm status x -oyaml`, `helm status x --output=json`, `helm get values x`, `helm get manifest x`, `helm get all x`, `helm search hub nginx`, `kubectl create token default --dry-run=client`,
		`aws lambda list-functions`, `aws autoscaling describe-launch-configurations`, `aws cloudfront list-distributions`, `aws ecs describe-task-definition --task-definition x`, `aws ecr get-login-password`, `aws ssm get-parameter --name x`,
		`gcloud functions describe x`, `gcloud functions list --format=json`, `gcloud run services describe x`, `gcloud run services describe x --format=json`, `gcloud run services describe x --format='value(spec.template)'`, `gcloud run services describe x --format='json(status)'`, `gcloud app describe`, `gcloud builds describe x`, `gcloud compute instance-templates describe x`, `gcloud compute project-info describe`,
		`az webapp config appsettings list -n x -g y`, `az functionapp show -n x -g y`, `az containerapp show -n x -g y`, `terraform show`, `terraform output x`, `terraform state show x`, `terraform state pull`, `vault kv get x`, `consul kv get x`, `consul kv export`, `gh secret list`, `gh variable list`, `heroku config`,
		`systemctl show x`, `systemctl show`, `systemctl cat x`, `systemctl show -p Environment x`, `systemctl show -p ''`, `ps e`, `ps -o pid,environ`, `kubectl get secret x -o yaml`, `gh pr list --json number --jq '$ ENV'`,
		`kubectl wait secret/x --for=jsonpath='{.kind}'=Secret -o yaml`, `kubectl wait pod/x --for=delete -o json`, `kubectl diff -f '"/home/me/x.yaml"'`, `kubectl create foo --dry-run=client`, `kubectl apply view-last-applied secret/x --dry-run=client`,
		`docker inspect -f '{{printf "}}%v" .Config.Env}}' web`, "docker inspect -f '{{printf `}}` .Config.Env}}' web", `docker inspect -f '{{json .Spec}}' x`, `docker inspect -f '{{json .HostConfig}}' web`, `docker inspect -f '{{json .HostConfig.LogConfig}}' web`,
		`helm template . -f '"/home/me/.kube/config"'`, `helm template . --set-file 'a\=b=/home/me/x'`, `helm template . --set-file 'a={/home/me/x}'`, `gcloud config get-value proxy/password`, `aws ec2 describe-spot-instance-requests`, `aws cloudfront list-distributions-by-web-acl-id --web-acl-id x`,
		`docker inspect -f json web`, `docker inspect --format=json web`, `docker image inspect -f json x`, `podman inspect -sf json web`, `ps wwE`, `ps axE`, `docker top web axE`,
		`brew info x--1.0.x86_64_linux.bottle.tar.gz`, `apt show x.deb`,
	} {
		if j := Judge(line, at, ""); j.Verdict == Allow {
			t.Errorf("%s: %v (%s)", line, j.Verdict, j.Finding.Reason)
		}
	}
	for _, line := range []string{
		`docker inspect -f '{{.State.Status}}' web`, `docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' web`, `docker inspect --format '{{.HostConfig.RestartPolicy.Name}}' web`, `docker network inspect bridge`, `docker volume inspect data`, `docker top web`, `helm status x`, `helm status x -o table`, `helm list -o json`,
		`gcloud run services list`, `gcloud run services describe x --format='value(status.url)'`, `gcloud functions list`, `gcloud compute instances describe x --zone z`, `systemctl show -p ExecStart x`, `systemctl status x`, `ps aux`, `docker ps -a`, `kubectl get pods -o yaml`,
		`kubectl wait pod/x --for=condition=Ready --timeout=60s`, `kubectl create deployment x --image=y --dry-run=client -o yaml`, `brew info python@3.12`, `gcloud config get-value project`, `apt policy python3.11-dev`,
	} {
		if j := Judge(line, at, ""); j.Verdict != Allow {
			t.Errorf("%s: %v (%s)", line, j.Verdict, j.Finding.Reason)
		}
	}
}

// Files that are called so hold logins, mostly.
func TestNamesOfFilesOfCredentials(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]bool{".envrc": true, "prod.env": true, "sub/.env.local": true, ".secrets": true, ".vault-token": true, ".cargo/credentials.toml": true, ".s3cfg": true, ".env.example": false, "environment.go": false, "env.tf": false, "secrets.tf": false} {
		if got := Secret("/home/me", "/w/"+name); got != secret {
			t.Errorf("%s: %v", name, got)
		}
	}
}
