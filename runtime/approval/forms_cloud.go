package approval

// cloudForms are the clients of clouds, for services that keep no secrets, and the
// verbs that read.
const cloudForms = `
@aws: --region=region --profile=name --output={json,text,table,yaml} --query=query --no-cli-pager --no-paginate --color={on,off,auto} --max-items=num --page-size=num --starting-token=name --no-cli-auto-prompt
@of: --filters=names --filter=names --name=name --names=names --ids=names --max-results=num --next-token=name --all --start-time=name --end-time=name --include-all-instances --instance-ids=names --vpc-ids=names --subnet-ids=names --group-ids=names --group-names=names --image-ids=names --owners=names --volume-ids=names --snapshot-ids=names
 --cluster=name --cluster-name=name --clusters=names --services=names --tasks=names --service=name --service-name=name --nodegroup-name=name --stack-name=name --stack-status-filter=names --log-group-name-prefix=path --log-group-name=path --log-stream-name=name --log-stream-name-prefix=text --filter-pattern=name --limit=num --start-from-head
 --bucket=bucket --prefix=path --delimiter=name --max-keys=num --function-name=name --role-name=name --user-name=name --group-name=name --policy-arn=name --policy-name=name --version-id=name --path-prefix=path --scope=name --only-attached --db-instance-identifier=name --db-cluster-identifier=name --table-name=name --queue-name-prefix=name --queue-url=queue --attribute-names=names
 --topic-arn=name --repository-name=name --repository-names=names --registry-id=name --image-ids=names --hosted-zone-id=name --load-balancer-arn=name --load-balancer-arns=names --target-group-arn=name --target-group-arns=names --listener-arns=names --auto-scaling-group-names=names --alarm-names=names --alarm-name-prefix=name --state-value=name --namespace=path --metric-name=name
 --dimensions=names --period=num --statistics=names --resource-arn=name --resource-id=name --resource-type=name --certificate-arn=name --distribution-id=name --rest-api-id=name --api-id=name --state-machine-arn=name --execution-arn=name --trail-name-list=names --lookup-attributes=names --time-period=names --granularity=name --metrics=names --group-by=names --account-id=name --key-id=name
aws: @aws
aws sts get-caller-identity: @aws
aws s3 ls: @aws --recursive --human-readable --summarize bucket
aws configure list,list-profiles: @aws
aws ec2,ecs,eks,rds,elbv2,elb,autoscaling,cloudwatch,logs,cloudformation,cloudtrail,dynamodb,elasticache,efs,sqs,sns,events,route53,cloudfront,acm,kms,organizations,opensearch,kafka,redshift,stepfunctions,ecr,servicequotas,resourcegroupstaggingapi,backup describe-*,list-*: @aws @of
aws iam,lambda,s3api,apigateway,apigatewayv2 list-*: @aws @of
aws iam get-role,get-user,get-group,get-policy,get-policy-version,get-role-policy,get-account-summary: @aws @of
aws s3api get-bucket-location,get-bucket-versioning,get-bucket-tagging,get-bucket-encryption,get-bucket-acl,get-bucket-policy,get-public-access-block,head-bucket: @aws @of
aws cloudwatch get-metric-statistics: @aws @of
aws cloudtrail lookup-events: @aws @of
aws ce get-cost-and-usage: @aws @of
aws logs get-log-events: @aws @of

@gcloud: --project=name --zone=word --region=word --location=word --cluster=name --format=text --filter=text --limit=num --page-size=num --sort-by=text --uri --verbosity={debug,info,warning,error,critical,none} --quiet --zones=word --regions=word --configuration=name
gcloud: @gcloud
gcloud version: @gcloud
gcloud info:
gcloud config list,get-value,get: @gcloud --all {project,account,disable_usage_reporting,core,compute,run,functions,core/project,core/account,compute/zone,compute/region,run/region,functions/region,artifacts/location,builds/region,container/cluster}
gcloud auth list: @gcloud
gcloud projects,organizations,services list,describe,get-iam-policy: @gcloud --enabled --available word
gcloud config configurations list,describe: @gcloud name
gcloud compute instances,disks,images,networks,addresses,firewall-rules,routes,routers,zones,regions,machine-types,snapshots,instance-groups,instance-templates,forwarding-rules,backend-services,health-checks,target-pools,url-maps list,describe: @gcloud --global word
gcloud compute networks subnets list,describe: @gcloud word
gcloud compute project-info describe: @gcloud
gcloud container clusters,images,operations list,describe: @gcloud word
gcloud container node-pools list,describe: @gcloud word
gcloud sql instances,databases,backups,operations list,describe: @gcloud --instance=name word
gcloud run services,revisions,jobs list,describe: @gcloud --service=name word
gcloud functions,builds,deployments,app list,describe: @gcloud word
gcloud pubsub topics,subscriptions list,describe: @gcloud word
gcloud storage buckets list,describe: @gcloud
gcloud iam service-accounts,roles list,describe: @gcloud word
gcloud dns managed-zones,record-sets list,describe: @gcloud word
gcloud logging read: @gcloud --freshness=text --order=name text
gcloud logging logs,sinks,metrics list,describe: @gcloud word
gcloud artifacts repositories,packages,versions,docker list,describe: @gcloud --repository=name word
gcloud monitoring dashboards list,describe: @gcloud word

@az: -gnol=name --resource-group=name --name=name --subscription=name --output={json,jsonc,table,tsv,yaml,yamlc,none} --query=query --location=name --ids=ids --only-show-errors --all
az: @az
az account show,list,list-locations: @az
az group,vm,vmss,aks,acr,disk,image,snapshot,identity,resource,lock,tag,feature,provider show,list: @az -d --show-details --resource-type=name --namespace=name --tag=name
az group,vm exists,list-ip-addresses,list-sizes,list-skus,list-usage,list-vm-resize-options: @az
az network vnet,nsg,nic,public-ip,lb,route-table,application-gateway,private-endpoint,dns show,list: @az
az network vnet,nsg subnet,rule show,list: @az --vnet-name=name --nsg-name=name
az aks nodepool show,list: @az --cluster-name=name
az acr repository list,show-tags,show: @az --repository=name --image=name --top=num --orderby=name
az monitor activity-log,metrics,metrics-alert list,show: @az --start-time=name --end-time=name --resource=name --metric=name --interval=name --offset=name
az sql server,db show,list: @az --server=name -s=name
az role assignment,definition list: @az --assignee=name --scope=ids --custom-role-only?name
az storage account show,list: @az
az version:
`
