package approval

// gitForms are the verbs of git, and of the clients of forges.
const gitForms = `
git: -pP -C=look --no-pager --paginate --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path
@diff: -psuRabwWzcmtrq -M?text -C?text -U?num -SG=text -l=num -X?text --patch --no-patch --stat?text --numstat --shortstat --summary --name-only --name-status --raw --minimal --patience --histogram --diff-algorithm=text --word-diff?text --word-diff-regex=text --color-words?text --color?text
 --no-color --no-renames --find-renames?text --find-copies?text --diff-filter=text --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-space-at-eol --ignore-cr-at-eol --function-context --exit-code --quiet --check --full-index --binary --abbrev?num --relative?text --text
 --no-ext-diff --no-textconv --ignore-submodules?text --inter-hunk-context=num --compact-summary --dirstat?text --patch-with-stat --pickaxe-all --pickaxe-regex --src-prefix=text --dst-prefix=text --no-prefix --unified=num --cc --color-moved?text
@log: @diff -#giEFPm -nL=text --oneline --graph --decorate?text --no-decorate --all --branches?text --tags?text --remotes?text --author=text --committer=text --grep=text --since=text --until=text --after=text --before=text --max-count=num --skip=num --reverse --merges --no-merges --first-parent
 --follow --format=fmt --pretty?fmt --abbrev-commit --no-abbrev-commit --date=text --topo-order --date-order --author-date-order --left-right --left-only --right-only --cherry-pick --cherry-mark --cherry --boundary --ancestry-path --simplify-by-decoration --full-history --invert-grep --all-match --regexp-ignore-case
 --extended-regexp --fixed-strings --perl-regexp --walk-reflogs --not --glob=text --exclude=text --no-walk?text --source --parents --children --count --use-mailmap --notes?text --no-notes --full-diff --relative-date --root --max-parents=num --min-parents=num --objects --quiet
git status: -sbvz -u?text --short --branch --porcelain?text --long --verbose --untracked-files?text --ignored?text --ahead-behind --no-ahead-behind --renames --no-renames --show-stash text*
git diff: @diff -#123 --cached --staged --merge-base --ours --theirs --base text*
git log,show,whatchanged,rev-list: @log text*
git shortlog: @log -sne --summary --numbered --email text*
git diff-tree,diff-index,diff-files: @diff --cached --root --no-commit-id --merge-base text*
git range-diff: @diff --creation-factor=num text*
git blame,annotate: -wlstfnecpb -L=text -M?num -C?num --date=text --porcelain --line-porcelain --show-email --show-name --show-number --since=text --abbrev=num --root text*
git rev-parse: -q --abbrev-ref?text --short?num --verify --quiet --show-toplevel --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --show-prefix --show-cdup --symbolic --symbolic-full-name --branches?text --tags?text --remotes?text --all text*
git ls-files: -cdmosuktvzif -x=text --cached --deleted --modified --others --ignored --stage --unmerged --killed --exclude-standard --exclude=text --full-name --error-unmatch --abbrev?num --eol --directory --deduplicate text*
git ls-tree: -rtdlz --name-only --name-status --full-name --full-tree --long --abbrev?num --object-only text*
git describe: --all --tags --always --long --abbrev?num --dirty?text --broken?text --exact-match --match=text --exclude=text --contains --candidates=num --first-parent text*
git cat-file: -tspe text text
git merge-base: -a --all --is-ancestor --fork-point --octopus --independent text*
git name-rev: --name-only --tags --refs=text --always text*
git show-ref: -dqs?num --head --heads --branches --tags --verify --hash?num --abbrev?num text*
git for-each-ref: --format=fmt --sort=fmt --count=num --contains=text --merged?text --no-merged?text --points-at=text text*
git grep: -#niwvlLcohHEGFPpWIazqr -e=text -f=file -ABCm=num --cached --untracked --no-color --color?text --heading --break --column --count --name-only --and --or --not --all-match --max-depth=num --exclude-standard --no-exclude-standard --ignore-case --line-number --word-regexp --files-with-matches --fixed-strings --extended-regexp --perl-regexp
 --show-function --function-context --quiet text*
git count-objects: -vH --verbose --human-readable
git check-ignore: -vnqz --verbose --non-matching --no-index text*
git var: name
git version: --build-options
git cherry: -v text*
git branch: -arvl --all --remotes --verbose --list --show-current --contains=text --no-contains=text --merged?text --no-merged?text --sort=fmt --format=fmt --points-at=text --color?text --no-color --column?text --no-column text*
git tag: -l -n?num --list --contains=text --merged?text --no-merged?text --sort=fmt --format=fmt --points-at=text --column?text text*
git remote: -v --verbose
git remote get-url: --all --push name
git reflog: @log
git reflog show: @log text*
git stash list,show: @log text*
git worktree list: -v --porcelain
git notes list,show: text*
git sparse-checkout list:
git config: -z --get=key --get-all=key --show-origin --show-scope --local --global
git config get: key
git add: -AunvfN --all --update --dry-run --verbose --force --intent-to-add --ignore-errors --refresh --chmod=text text*
git clean: -ndxXf --dry-run text*

@gh: -R=repo -q=jq -t=text --repo=repo --json=text --jq=jq --template=text
gh pr,issue,run,release,workflow,label,cache,ruleset,gist,project list: @gh -LslaASBH=text --limit=num --state=name --label=text --assignee=text --author=text --search=text --base=text --head=text --branch=text --workflow=text --status=text --all
gh pr,issue,release view: @gh -c --comments link
gh pr status,diff,checks: @gh --name-only --patch --color=text --required --conflict-status link
gh run,workflow view: @gh -v -ja=text --job=name --attempt=num --log --log-failed --exit-status --verbose --yaml link
gh repo list: -lLt=text -q=jq --limit=num --json=text --jq=jq --template=text --source --fork --language=text --topic=text --archived --no-archived --visibility=text word
gh repo view: -bt=text -q=jq --branch=text --json=text --jq=jq --template=text repo
gh search prs,issues,repos,code,commits: @gh -L=text --limit=num --owner=name --state=name --author=text --label=text --language=text --sort=text text*
gh auth status:
gh status:
gh api: -q=jq -X={GET,get} --jq=jq --method={GET,get} --paginate --slurp --silent api
`
