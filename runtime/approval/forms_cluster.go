package approval

// clusterForms are the tools for clusters, containers and what is made by plan.
const clusterForms = `
@kube: -n=name --namespace=name --context=name --request-timeout=num
@view: @kube -Aw -o=shape -l=text --all-namespaces --output=shape --selector=text --field-selector=text --no-headers --show-labels --sort-by=text --watch --ignore-not-found --chunk-size=num
kubectl,oc,k: @view
kubectl,oc,k get: @view -L=text --label-columns=text --show-kind --show-managed-fields --subresource={status,scale,resize} name*
kubectl,oc,k describe: @view --show-events?text name*
kubectl,oc,k logs: @kube -fp -l=text -c=name --selector=text --previous --follow --tail=num --since=num --since-time=text --container=name --timestamps --all-containers --prefix --max-log-requests=num --limit-bytes=num --ignore-errors name*
kubectl,oc,k top: @view --containers --no-headers --use-protocol-buffers name*
kubectl,oc,k explain: @kube --recursive --api-version=name --output=shape name
kubectl,oc,k version: @kube -o=shape --client --output=shape
kubectl,oc,k api-resources,api-versions: @view --namespaced?text --verbs=text --api-group=name --cached
kubectl,oc,k cluster-info: @kube
kubectl,oc,k events: @view --for=name --types=text
kubectl,oc,k wait: @kube -Al=text --all-namespaces --selector=text --field-selector=text --for=text --timeout=num --all name*
kubectl,oc,k rollout status,history: @view --revision=num --timeout=num --watch?text name*
kubectl,oc,k auth can-i: @kube -Aq --all-namespaces --quiet --list --no-headers name*
kubectl,oc,k auth whoami: @kube -o=shape
kubectl,oc,k config view: @kube -o=shape --output=shape --minify
kubectl,oc,k config current-context,get-clusters,get-users: @kube
kubectl,oc,k config get-contexts: @kube -o=shape --no-headers name*
kubectl,oc,k diff: @kube -R -f=file -l=text --filename=file --recursive --selector=text --server-side
@made: @kube -R -f=file -o=shape -l=text --filename=file --recursive --output=shape --selector=text --dry-run={client} --image=text --replicas=num --from-literal=text --port=num --schedule=text --labels=text --restart=text --class=text --rule=text --tcp=text
kubectl,oc,k apply: @made
kubectl,oc,k run,expose: @made text*
kubectl,oc,k create: @made {clusterrole,clusterrolebinding,configmap,cm,cronjob,cj,deployment,deploy,ingress,ing,job,namespace,ns,poddisruptionbudget,pdb,priorityclass,pc,quota,resourcequota,role,rolebinding,secret,service,svc,serviceaccount,sa} text*

@helm: -n=name --namespace=name --kube-context=name
helm: @helm
helm list,ls: @helm -aAqdr -lf=text -m=num -o={json,yaml,table} --all --all-namespaces --short --deployed --failed --pending --superseded --uninstalled --filter=text --max=num --offset=num --date --reverse --selector=text --output={json,yaml,table}
helm status: @helm -o={json,yaml,table} --output={json,yaml,table} --revision=num --show-resources --show-desc name
helm history: @helm -o={json,yaml,table} --output={json,yaml,table} --max=num name
helm get notes,metadata: @helm -o={json,yaml,table} --output={json,yaml,table} --revision=num name
helm lint: @helm -f=text --values=text --set=text --set-string=text --set-json=text --set-file=text --strict --quiet --with-subcharts --kube-version=text chart*
helm template: @helm -g -asf=text --values=text --set=text --set-string=text --set-json=text --set-file=text --show-only=text --include-crds --is-upgrade --no-hooks --skip-tests --skip-crds --release-name --kube-version=text --api-versions=text --generate-name --version=text chart*
helm show,inspect chart,values,readme,all,crds: --version=text --jsonpath=text chart
helm search repo,hub: -lr --versions --regexp --version=text -o={json,yaml,table} --output={json,yaml,table} --max-col-width=num name
helm version: --short --template=text

terraform,tofu: +words -chdir=look -version -help
terraform,tofu version: +words -json
terraform,tofu fmt: +words -check -diff -recursive -no-color -list=text -write=text look*
terraform,tofu output: +words -no-color -state=file
terraform,tofu state list: +words -state=file -id=text name*
terraform,tofu workspace list,show: +words -no-color
pulumi vault consul nomad = version

@box: -f=text --filter=text --format=text --no-trunc
docker,podman,nerdctl ps: @box -aqnls --all --quiet --size --latest --last=num
docker,podman,nerdctl images: @box -aq --all --digests --quiet name
docker,podman,nerdctl logs: -ft -n=num --follow --tail=num --since=text --until=text --timestamps --details name*
docker,podman,nerdctl inspect: -f=text -s --format=text --size --type=name name*
docker,podman,nerdctl version,info: -f=text --format=text
docker,podman,nerdctl top,diff: name
docker,podman,nerdctl port: name*
docker,podman,nerdctl stats: @box -a --all --no-stream name*
docker,podman,nerdctl events: @box --since=text --until=text
docker,podman,nerdctl image,container,network,volume,machine ls,list: @box -aqnls --all --quiet --digests --size --latest name*
docker,podman,nerdctl image,container,network,volume inspect: -f=text -s --format=text --size name*
docker,podman,nerdctl container logs: -ft -n=num --follow --tail=num --since=text --until=text --timestamps --details name*
docker,podman,nerdctl container top: name
docker,podman,nerdctl container port,stats: --no-stream name*
docker,podman,nerdctl system df: -v --verbose --format=text
docker,podman,nerdctl buildx,builder ls: --no-trunc --format=text
docker compose ls: -aq --all --quiet --format=text --filter=text
docker compose ps,images,top,port,version: -aq --all --quiet --services --status=text --format=text --short name*
docker compose logs: -ft -n=num --follow --tail=num --since=text --until=text --timestamps --no-color --no-log-prefix name*
docker-compose ps,images,top,port,version,ls: -aq --all --quiet --services --status=text --format=text --short name*
docker-compose logs: -ft -n=num --follow --tail=num --since=text --until=text --timestamps --no-color name*

`
