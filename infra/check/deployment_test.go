package check_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// The tests of this file find what Azure refuses, or what harms others, and no resource type shows.

// declared returns the declaration of a name in a file, and whether it has a decorator.
func declared(t *testing.T, root *node, name, decorator string) (n *node, decorated bool) {
	t.Helper()
	for _, d := range root.Children {
		if d.Type == "decorators" {
			decorated = strings.Contains(text(d), decorator)
			continue
		}
		if id := d.first("identifier"); id != nil && id.Text == name {
			return d, decorated
		}
		decorated = false
	}
	t.Fatalf("nothing declares %s", name)
	return nil, false
}

// at returns the value at a path of properties, nil if there is none.
func (n *node) at(path ...string) *node {
	for _, name := range path {
		if n == nil {
			return nil
		}
		n = n.property(name)
	}
	return n
}

// text joins the leaves of a node without spaces.
func text(n *node) string {
	if n == nil {
		return ""
	}
	words := []string{n.Text}
	for _, c := range n.Children {
		words = append(words, text(c))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func bicep(t *testing.T) map[string]*node {
	t.Helper()
	return parse(t, templates(t))
}

// TestFlexIsSentNothingThatItRefuses: newer regions refuse these properties in siteConfig, even as
// null (microsoft/azure-pipelines-tasks#21032).
func TestFlexIsSentNothingThatItRefuses(t *testing.T) {
	t.Parallel()
	site, _ := declared(t, bicep(t)["modules/functionapp.bicep"], "site", "")
	sent := body(site).at("properties", "siteConfig")
	if sent.Type != "ternary_expression" || text(sent.Children[0]) != "isFlex" {
		t.Fatalf("siteConfig is %q, want one of two by isFlex", text(sent))
	}
	for _, name := range []string{"ftpsState", "linuxFxVersion"} {
		if sent.Children[1].at(name) != nil {
			t.Errorf("Flex Consumption is sent %s", name)
		}
		if sent.Children[2].at(name) == nil {
			t.Errorf("Elastic Premium is not sent %s", name)
		}
	}
}

// TestSecretsAreInNoRecordOfADeployment: a record contains every parameter of a module that is not
// secure. The host reads secrets from a key vault with an identity that exists.
func TestSecretsAreInNoRecordOfADeployment(t *testing.T) {
	t.Parallel()
	trees := bicep(t)
	for _, file := range []string{"main.bicep", "modules/functionapp.bicep"} {
		if _, secure := declared(t, trees[file], "secretSettings", "secure"); !secure {
			t.Errorf("%s: secretSettings is not @secure()", file)
		}
	}
	app, _ := declared(t, trees["main.bicep"], "app", "")
	for _, p := range body(app).at("params").Children {
		if len(p.Children) == 2 && strings.Contains(text(p.Children[1]), "secretSettings") && p.Children[0].Text != "secretSettings" {
			t.Errorf("the parameter %s of the module app has the secrets, too", p.Children[0].Text)
		}
	}
	site, _ := declared(t, trees["modules/functionapp.bicep"], "site", "")
	if got := text(body(site).at("properties", "keyVaultReferenceIdentity")); got != "identityId" {
		t.Errorf("keyVaultReferenceIdentity is %q, want identityId", got)
	}
}

// TestDeadLettersOfEveryQueueThatIsReceivedFromRaiseAnAlert: signal queues need none, since nothing
// receives from them.
func TestDeadLettersOfEveryQueueThatIsReceivedFromRaiseAnAlert(t *testing.T) {
	t.Parallel()
	trees := bicep(t)
	alerts, _ := declared(t, trees["main.bicep"], "alerts", "")
	if got := text(body(alerts).at("params", "entityNames")); got != "fanOut eventsName shardQueueName eventsName" {
		t.Errorf("entityNames are %q, want the queue of shards with fanOut", got)
	}
	alert, _ := declared(t, trees["modules/alerts.bicep"], "deadLetters", "")
	if got := text(body(alert).at("properties", "criteria")); !strings.Contains(got, "EntityName operator Include values entityNames") {
		t.Errorf("the alert looks at %q", got)
	}
}

// TestEveryParameterIsOnItsPage compares docs/deploy.md with main.bicep.
func TestEveryParameterIsOnItsPage(t *testing.T) {
	t.Parallel()
	page := read(t, "docs", "deploy.md")
	for _, d := range bicep(t)["main.bicep"].Children {
		if d.Type == "parameter_declaration" && !strings.Contains(page, "\n| `"+d.first("identifier").Text+"` |") {
			t.Errorf("docs/deploy.md has no row for %s", d.first("identifier").Text)
		}
	}
}

// TestOnlyTheAppsSubnetReachesTheInternet: from the API 2025-07-01 on, a subnet has no outbound
// access by default. Without it the app could reach neither Entra ID nor Application Insights.
func TestOnlyTheAppsSubnetReachesTheInternet(t *testing.T) {
	t.Parallel()
	root := bicep(t)["modules/network.bicep"]
	for name, want := range map[string]string{"appSubnet": "true", "endpointSubnet": "false"} {
		subnet, _ := declared(t, root, name, "")
		if got := text(body(subnet).at("properties", "defaultOutboundAccess")); got != want {
			t.Errorf("%s: defaultOutboundAccess is %q, want %s", name, got, want)
		}
	}
}

// TestOneChangeAtATime: an account refuses a second private endpoint while it works on the first.
func TestOneChangeAtATime(t *testing.T) {
	t.Parallel()
	loops := 0
	for file, root := range bicep(t) {
		for _, d := range root.Children {
			if d.Type != "module_declaration" || d.first("for_statement") == nil || !strings.HasSuffix(d.first("string").literal(), "privateendpoint.bicep") {
				continue
			}
			loops++
			name := d.first("identifier").Text
			if _, decorated := declared(t, root, name, "batchSize 1"); !decorated {
				t.Errorf("%s: %s makes all at once", file, name)
			}
		}
	}
	if loops != 2 {
		t.Errorf("%d loops make private endpoints, want those of storage and of Cosmos DB", loops)
	}
}

// TestDNSZonesThatExistAreNotMade: zones whose ids are given are neither created nor linked.
func TestDNSZonesThatExistAreNotMade(t *testing.T) {
	t.Parallel()
	root := bicep(t)["modules/network.bicep"]
	made, _ := declared(t, root, "made", "")
	if got := text(made.Children[1]); got != "filter items zones item contains existingZoneIds item key" {
		t.Errorf("made are %q, want the zones that are not among existingZoneIds", got)
	}
	for _, name := range []string{"zone", "link"} {
		d, _ := declared(t, root, name, "")
		if got := text(d.first("for_statement")); !strings.Contains(got, " made ") {
			t.Errorf("%s is made for others than made: %s", name, got)
		}
	}
	if ids, _ := declared(t, root, "zoneIds", ""); !strings.HasSuffix(text(ids), " existingZoneIds") {
		t.Errorf("the ids are %q, want those that were given among them", text(ids))
	}
}

// TestAGroupThatExistsIsOnlyReferredTo: a deployment of a resource group replaces its tags.
func TestAGroupThatExistsIsOnlyReferredTo(t *testing.T) {
	t.Parallel()
	root := bicep(t)["main.bicep"]
	group, _ := declared(t, root, "group", "")
	if condition := group.first("if_statement"); condition == nil || text(condition.Children[0]) != "resourceGroupExists" {
		t.Errorf("the group is deployed whether it exists or not")
	}
	// Everything in the group must wait for it, directly or through another module.
	uses := map[string]string{}
	for _, d := range root.Children {
		if d.Type == "module_declaration" {
			uses[d.first("identifier").Text] = " " + text(d) + " "
		}
	}
	var waits func(name string, seen []string) bool
	waits = func(name string, seen []string) bool {
		for other := range uses {
			if other != name && !slices.Contains(seen, other) && regexp.MustCompile(` `+other+` (outputs|[^']* outputs)`).MatchString(uses[name]) && waits(other, append(seen, name)) {
				return true
			}
		}
		d, _ := declared(t, root, name, "")
		for _, dependency := range strings.Fields(text(body(d).at("dependsOn"))) {
			if dependency == "group" || uses[dependency] != "" && !slices.Contains(seen, dependency) && waits(dependency, append(seen, name)) {
				return true
			}
		}
		return false
	}
	for name := range uses {
		d, _ := declared(t, root, name, "")
		if scope := text(body(d).at("scope")); scope == "resourceGroup resourceGroupName" && !waits(name, nil) {
			t.Errorf("%s does not wait for the group", name)
		} else if scope != "resourceGroup resourceGroupName" && !strings.HasPrefix(scope, "resourceGroup split account accountId") {
			t.Errorf("%s is deployed to %q", name, scope)
		}
	}
}

// TestAConsumerMayOnlyReceive: the role that counts messages may also delete the queue, so only the
// scale rule has it.
func TestAConsumerMayOnlyReceive(t *testing.T) {
	t.Parallel()
	root := bicep(t)["containerapps/main.bicep"]
	granted := map[string][]string{}
	for _, d := range root.Children {
		if d.Type != "module_declaration" {
			continue
		}
		if params := body(d).at("params"); params.at("roles") != nil {
			who, _, _ := strings.Cut(text(params.at("principalId")), " ")
			granted[who] = append(granted[who], d.first("string").literal()+" "+text(params.at("roles")))
		}
	}
	for name, id := range map[string]string{"receiverRole": "4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0", "ownerRole": "090c5cfd-751d-490a-894a-3ce6f1109419"} {
		if role, _ := declared(t, root, name, ""); role.Children[1].literal() != id {
			t.Errorf("%s is %s, want %s", name, role.Children[1].literal(), id)
		}
	}
	for who, role := range map[string]string{"consumerIdentity": "receiverRole", "consumerRuleIdentity": "ownerRole"} {
		slices.Sort(granted[who])
		if want := []string{"../modules/roles/queue.bicep " + role, "../modules/roles/subscription.bicep " + role}; !slices.Equal(granted[who], want) {
			t.Errorf("%s has %q, want %q", who, granted[who], want)
		}
	}
	app, _ := declared(t, root, "consumerApp", "")
	properties := body(app).at("properties")
	if got := text(properties.at("configuration", "identitySettings")); got != "identity consumerRuleIdentity id lifecycle None" {
		t.Errorf("identitySettings are %q: the application can sign in as the rule", got)
	}
	if got := text(properties.at("template", "scale", "rules")); !strings.Contains(got, "identity consumerRuleIdentity id metadata") {
		t.Errorf("the rule signs in as another: %s", got)
	}
	if got := text(properties.at("template", "containers")); strings.Contains(got, "consumerRuleIdentity") {
		t.Errorf("the application knows the rule's identity: %s", got)
	}
}

// TestAPipelineIsGivenWhatTheSampleReads: it has no role of a developer.
func TestAPipelineIsGivenWhatTheSampleReads(t *testing.T) {
	t.Parallel()
	sample := read(t, "infra", "main.bicepparam")
	var project struct{ Pipeline struct{ Variables []string } }
	testworld.Must(t, yaml.Unmarshal([]byte(read(t, "azure.yaml")), &project))
	workflow := read(t, ".github", "workflows", "azure-dev.yml")
	required := regexp.MustCompile(`readEnvironmentVariable\('(\w+)'\)`).FindAllStringSubmatch(sample, -1)
	if len(required) == 0 {
		t.Fatal("the sample reads no variable that has to be set")
	}
	for _, name := range required {
		if !slices.Contains(project.Pipeline.Variables, name[1]) {
			t.Errorf("azure.yaml: pipeline.variables are %q, want %s, or azd pipeline config does not set it", project.Pipeline.Variables, name[1])
		}
		if want := name[1] + ": ${{ vars." + name[1] + " }}"; !strings.Contains(workflow, want) {
			t.Errorf("azure-dev.yml has no %s", want)
		}
	}
	grant, _ := declared(t, bicep(t)["main.bicepparam"], "grantDeployer", "")
	if got := text(grant.Children[1]); got != "empty readEnvironmentVariable GITHUB_ACTIONS ''" {
		t.Errorf("grantDeployer is %q, want true outside of a workflow only", got)
	}
}

// TestNoAzdThatDeletesOthersGroups: before 1.24.1, azd deletes every group that a deployment writes
// to, including that of a Cosmos DB account (Azure/azure-dev#2916).
func TestNoAzdThatDeletesOthersGroups(t *testing.T) {
	t.Parallel()
	for file, pattern := range map[string]string{
		"azure.yaml":                      `(?m)^  azd: ">= (\S+)"`,
		".github/workflows/azure-dev.yml": `release download azure-dev-cli_(\S+) `,
	} {
		if got := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file)); got == nil || got[1] != "1.24.1" {
			t.Errorf("%s: azd %q, want 1.24.1", file, got)
		}
	}
}
