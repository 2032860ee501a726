//go:build azuretypes

package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/npm"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// The types of Azure's resources come with the Azure MCP server, which has those of the Bicep
// compiler. `azmcp bicepschema get` prints the types of one resource, offline (microsoft/mcp,
// Azure.Mcp.Tools.BicepSchema). They are of the latest API version that it knows, which may be
// older than the templates'. It would report a newer property as unknown.

// unlisted are the resources whose types azmcp names and does not have.
var unlisted = []string{
	"Microsoft.Authorization/locks",
	"Microsoft.Insights/diagnosticSettings",
	"Microsoft.Insights/metricAlerts",
	"Microsoft.Insights/scheduledQueryRules",
	"Microsoft.Network/privateDnsZones",
	"Microsoft.Network/privateDnsZones/virtualNetworkLinks",
}

// typeSet is the types of one resource.
type typeSet struct {
	body    definition
	defined map[string]definition
}

// definition is an object type, or a choice of types that a property distinguishes.
type definition struct {
	Kind       string `json:"$type"`
	Name       string
	Properties []property
	// of properties with any other name; empty = none are allowed
	Additional    string `json:"additionalPropertiesType"`
	Discriminator string
	Base          []property `json:"baseProperties"`
	Elements      []definition
}

type property struct {
	Name, Type, Description, Flags string
}

// properties are those of an object, by name.
func (d definition) properties() map[string]property {
	all := make(map[string]property)
	for _, p := range slices.Concat(d.Base, d.Properties) {
		all[p.Name] = p
	}
	return all
}

// readTypes reads the output of `azmcp bicepschema get`: an object, after log lines if it failed.
func readTypes(output []byte) (typeSet, error) {
	output = output[max(0, bytes.IndexByte(output, '{')):]
	var answer struct {
		Status  int
		Message string
		Results struct{ BicepSchemaResult []json.RawMessage }
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		return typeSet{}, err
	}
	if answer.Status != 200 {
		message, _, _ := strings.Cut(answer.Message, ". ")
		return typeSet{}, fmt.Errorf("status %d: %s", answer.Status, message)
	}
	set := typeSet{defined: make(map[string]definition)}
	for _, raw := range answer.Results.BicepSchemaResult {
		var d struct {
			definition
			BodyType definition
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			return typeSet{}, err
		}
		switch d.Kind {
		case "Resource":
			set.body = d.BodyType
		case "Object", "DiscriminatedObject":
			set.defined[d.Name] = d.definition
		}
	}
	return set, nil
}

// azureTypes returns the types of a resource. It installs azmcp once, and runs it once for each
// resource.
var azureTypes = func() func(t *testing.T, resource string) (typeSet, error) {
	var mutex sync.Mutex
	type result struct {
		set typeSet
		err error
	}
	known := make(map[string]result)
	return func(t *testing.T, resource string) (typeSet, error) {
		t.Helper()
		mutex.Lock()
		defer mutex.Unlock()
		if r, ok := known[resource]; ok {
			return r.set, r.err
		}
		folder, err := npm.InstallFolder(t.Context(), "azure-types", "azure")
		testworld.Must(t, err)
		programs, err := filepath.Glob(filepath.Join(folder, "node_modules", "@azure", "mcp-*", "dist", "azmcp"))
		testworld.Must(t, err)
		if len(programs) != 1 {
			t.Fatalf("%d programs azmcp in %s, want 1: there is one for Linux and one for macOS, on amd64 and arm64", len(programs), folder)
		}
		command := exec.CommandContext(t.Context(), programs[0], "bicepschema", "get", "--resource-type", resource)
		command.Env = append(command.Environ(), "AZURE_MCP_COLLECT_TELEMETRY=false")
		var failure bytes.Buffer
		command.Stderr = &failure
		output, err := command.Output()
		if len(output) == 0 {
			t.Fatalf("azmcp bicepschema get --resource-type %s: %v\n%s", resource, err, &failure)
		}
		var r result
		r.set, r.err = readTypes(output)
		known[resource] = r
		return r.set, r.err
	}
}()

// mismatches compares the resources of templates with their types: a property exists, may be
// written and is not missing, and its value, if it is a literal or a parameter, fits. Values that
// are known only at deployment are not checked.
func mismatches(t *testing.T, trees map[string]*node) []string {
	t.Helper()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		c := &typeChecker{t: t, file: name, root: trees[name]}
		for _, n := range trees[name].Children {
			if n.Type == "resource_declaration" {
				c.resource(n, "")
			}
		}
		found = append(found, c.found...)
	}
	return found
}

type typeChecker struct {
	t     *testing.T
	file  string
	root  *node
	set   typeSet
	found []string
}

func (c *typeChecker) report(n *node, format string, arguments ...any) {
	c.found = append(c.found, fmt.Sprintf("%s:%d: %s", c.file, n.Line, fmt.Sprintf(format, arguments...)))
}

// resource checks a resource and those declared within it.
func (c *typeChecker) resource(n *node, parent string) {
	kind, _, _ := strings.Cut(n.first("string").literal(), "@")
	if parent != "" {
		kind = parent + "/" + kind
	}
	object := body(n)
	if n.first("existing") == nil && !slices.Contains(unlisted, kind) {
		set, err := azureTypes(c.t, kind)
		if err != nil {
			c.report(n, "the types of %s: %v", kind, err)
			return
		}
		c.set = set
		c.object(object, set.body, "name", "parent", "scope", "dependsOn")
	}
	for _, p := range object.Children {
		if inner := p.first("resource_declaration"); inner != nil {
			c.resource(inner, kind)
		}
	}
}

// object checks the properties of an object, except Bicep's own.
func (c *typeChecker) object(n *node, d definition, own ...string) {
	if d.Kind == "DiscriminatedObject" {
		element, ok := c.element(n, d)
		if !ok {
			return
		}
		d.Properties, d.Additional = element.Properties, element.Additional
	}
	properties, given := d.properties(), make(map[string]bool)
	for _, p := range n.Children {
		if p.Type != "object_property" || len(p.Children) < 2 {
			continue
		}
		key, value := p.Children[0], p.Children[1]
		name := key.Text
		if key.Type == "string" {
			if name = key.literal(); name == "" {
				if d.Additional != "" {
					c.value(value, property{Name: "*", Type: d.Additional}, d.Name)
				}
				continue
			}
		}
		given[name] = true
		known, ok := properties[name]
		switch {
		case slices.Contains(own, name):
		case !ok && d.Additional != "":
			c.value(value, property{Name: name, Type: d.Additional}, d.Name)
		case !ok:
			c.report(p, "%s has no property %s", d.Name, name)
		case strings.Contains(known.Flags, "ReadOnly"):
			c.report(p, "%s of %s is read-only", name, d.Name)
		default:
			c.value(value, known, d.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if strings.Contains(properties[name].Flags, "Required") && !given[name] {
			c.report(n, "%s requires the property %s", d.Name, name)
		}
	}
}

// element returns the type that the distinguishing property selects, if its value is a literal.
func (c *typeChecker) element(n *node, d definition) (definition, bool) {
	value := n.property(d.Discriminator)
	if value == nil {
		c.report(n, "%s requires the property %s", d.Name, d.Discriminator)
		return definition{}, false
	}
	literal := value.literal()
	var allowed []string
	for _, e := range d.Elements {
		kind := e.properties()[d.Discriminator].Type
		if kind == literal {
			return e, true
		}
		allowed = append(allowed, kind)
	}
	if literal != "" {
		c.report(value, "%s of %s is %s, and may be %s", d.Discriminator, d.Name, literal, strings.Join(allowed, ", "))
	}
	return definition{}, false
}

// isDuration reports whether a property's description says that it is a duration. Some descriptions
// swap digits of the standard's number.
var isDuration = regexp.MustCompile(`ISO 8(60|06)1`)

// duration matches a duration in Azure's format.
var duration = regexp.MustCompile(`^P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$`)

// value checks the value of a property. Of an expression, it checks the operands that can become
// the value.
func (c *typeChecker) value(n *node, p property, of string) {
	switch n.Type {
	case "parenthesized_expression":
		c.value(n.Children[0], p, of)
		return
	case "ternary_expression":
		c.value(n.Children[1], p, of)
		c.value(n.Children[2], p, of)
		return
	case "identifier":
		c.named(n, p, of)
		return
	case "array", "for_statement":
		c.array(n, p, of)
		return
	case "object":
		if d, ok := c.set.defined[p.Type]; ok {
			c.object(n, d)
			return
		}
	}
	if kind := kindOf(n); kind != "" {
		c.kind(n, kind, p, of)
	}
}

// kindOf returns the type of a literal; empty if it is no literal.
func kindOf(n *node) string {
	switch n.Type {
	case "string":
		return "string"
	case "number":
		return "int"
	case "boolean":
		return "bool"
	case "object":
		return "object"
	}
	return ""
}

// primitives are the types that are neither names of other types nor literals.
var primitives = []string{"any", "string", "int", "bool", "object"}

// kind checks a value against a type and, for a literal, its text.
func (c *typeChecker) kind(n *node, kind string, p property, of string) {
	allowed := strings.Split(p.Type, " | ")
	var literals []string
	if _, isObject := c.set.defined[p.Type]; !isObject {
		literals = slices.DeleteFunc(slices.Clone(allowed), func(a string) bool { return slices.Contains(primitives, a) })
	}
	fits := slices.Contains(allowed, kind) || slices.Contains(allowed, "any") || kind == "string" && len(literals) > 0
	text := n.literal()
	switch {
	case !fits:
		c.report(n, "%s of %s is of the type %s, not %s", p.Name, of, p.Type, kind)
	case text == "": // empty, interpolated, or no text
	case len(literals) > 0 && !slices.Contains(literals, text):
		// Azure may accept values that its types do not have. They are refused here.
		c.report(n, "%s of %s is '%s', and may be %s", p.Name, of, text, strings.Join(literals, ", "))
	case isDuration.MatchString(p.Description) && !duration.MatchString(text):
		c.report(n, "%s of %s is '%s', and no duration such as PT1M", p.Name, of, text)
	}
}

func (c *typeChecker) array(n *node, p property, of string) {
	element, ok := strings.CutSuffix(p.Type, "[]")
	if !ok {
		if p.Type != "any" {
			c.report(n, "%s of %s is of the type %s, not an array", p.Name, of, p.Type)
		}
		return
	}
	for _, child := range n.Children {
		if n.Type == "array" && child.Type != "comment" || child.Field == "body" {
			c.value(child, property{Name: p.Name, Type: element, Description: p.Description}, of)
		}
	}
}

// named checks a name: a variable by its value, a parameter by its type.
func (c *typeChecker) named(n *node, p property, of string) {
	for _, d := range c.root.Children {
		id := d.first("identifier")
		if id == nil || id.Text != n.Text {
			continue
		}
		switch d.Type {
		case "variable_declaration":
			c.value(d.Children[1], p, of)
		case "parameter_declaration":
			kind := d.first("type").first("primitive_type")
			if kind != nil && slices.Contains([]string{"string", "int", "bool"}, kind.Text) {
				c.kind(n, kind.Text, p, of)
			}
		}
	}
}

func TestTheTemplatesFitAzuresTypes(t *testing.T) {
	t.Parallel()
	for _, mismatch := range mismatches(t, parse(t, templates(t))) {
		t.Errorf("infra/%s", mismatch)
	}
}

func TestTheTypesFindWhatIsWrongInTheTemplates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ file, right, wrong, want string }{
		"a misspelt property":                 {"modules/functionapp.bicep", "httpsOnly: true", "httpOnly: true", "SiteProperties has no property httpOnly"},
		"a number where a duration is wanted": {"modules/servicebus.bicep", "lockDuration: 'PT1M'", "lockDuration: 60", "lockDuration of SBQueueProperties is of the type string, not int"},
		"an unknown SKU, in a variable":       {"modules/servicebus.bicep", "'Premium' : 'Standard'", "'Premuim' : 'Standard'", "name of SBSku is 'Premuim'"},
		"an unknown direction, in an array":   {"modules/network.bicep", "direction: 'Inbound'", "direction: 'Inwards'", "direction of SecurityRulePropertiesFormat is 'Inwards'"},
		"a text where a truth value is":       {"modules/functionapp.bicep", "allow: false", "allow: 'false'", "allow of CsmPublishingCredentialsPoliciesEntityProperties is of the type bool"},
		"a misspelt property of a sample":     {"containerapps/main.bicep", "minReplicas: 0", "minReplica: 0", "Scale has no property minReplica"},
		"a misspelt property of a role":       {"modules/roles/queue.bicep", "roleDefinitionId:", "roleDefinition:", "RoleAssignmentProperties requires the property roleDefinitionId"},
	}
	sources := templates(t)
	wrong := make(map[string]string)
	for name, tt := range tests {
		wrong[name] = strings.ReplaceAll(sources[tt.file], tt.right, tt.wrong)
	}
	trees := parse(t, wrong)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := mismatches(t, map[string]*node{tt.file: trees[name]}); !strings.Contains(strings.Join(found, "\n"), tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}

func TestNoTypesAreLeftOutThatAreThere(t *testing.T) {
	t.Parallel()
	for _, resource := range unlisted {
		if _, err := azureTypes(t, resource); err == nil || !strings.Contains(err.Error(), "not supported") {
			t.Errorf("%s: %v: take it out of unlisted", resource, err)
		}
	}
}

func TestTheTypesFind(t *testing.T) {
	t.Parallel()
	const queue = "resource n 'Microsoft.ServiceBus/namespaces@2026-01-01' = {\n  name: 'n'\n  location: 'l'\n" +
		"  resource q 'queues' = {\n    name: 'q'\n    properties: {\n      %s\n    }\n  }\n}\n"
	const namespace = "resource n 'Microsoft.ServiceBus/namespaces@2026-01-01' = {\n  name: 'n'\n  location: 'l'\n  sku: %s\n}\n"
	tests := map[string]struct {
		template string
		want     []string
	}{
		"nothing in a sound resource": {
			template: "@description('d')\nparam t string\nvar d = 'PT5M'\n" + fmt.Sprintf(queue, "lockDuration: d\n      defaultMessageTimeToLive: t\n      maxDeliveryCount: 10"),
		},
		"nothing in a resource that exists": {template: "resource n 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {\n  name: 'n'\n}\n"},
		"a misspelt property": {
			template: fmt.Sprintf(queue, "lockDuraton: 'PT1M'"),
			want:     []string{"main.bicep:7: SBQueueProperties has no property lockDuraton"},
		},
		"a number where a duration is wanted": {
			template: fmt.Sprintf(queue, "lockDuration: 60"),
			want:     []string{"main.bicep:7: lockDuration of SBQueueProperties is of the type string, not int"},
		},
		"a text that is no duration": {
			template: fmt.Sprintf(queue, "lockDuration: '1 minute'"),
			want:     []string{"main.bicep:7: lockDuration of SBQueueProperties is '1 minute', and no duration such as PT1M"},
		},
		"a text where a number is wanted": {
			template: fmt.Sprintf(queue, "maxDeliveryCount: '10'"),
			want:     []string{"main.bicep:7: maxDeliveryCount of SBQueueProperties is of the type int, not string"},
		},
		"a variable of another type": {
			template: fmt.Sprintf(queue, "lockDuration: minute") + "var minute = 60\n",
			want:     []string{"main.bicep:11: lockDuration of SBQueueProperties is of the type string, not int"},
		},
		"a parameter of another type": {
			template: fmt.Sprintf(queue, "requiresSession: s") + "@description('d')\nparam s string\n",
			want:     []string{"main.bicep:7: requiresSession of SBQueueProperties is of the type bool, not string"},
		},
		"a branch of another type": {
			template: fmt.Sprintf(queue, "requiresSession: s ? true : 'false'") + "@description('d')\nparam s bool\n",
			want:     []string{"main.bicep:7: requiresSession of SBQueueProperties is of the type bool, not string"},
		},
		"an unknown SKU": {
			template: fmt.Sprintf(namespace, "{ name: 'Standrad' }"),
			want:     []string{"main.bicep:4: name of SBSku is 'Standrad', and may be Basic, Standard, Premium"},
		},
		"an unknown SKU where Azure may know others": {
			template: "resource a 'Microsoft.Storage/storageAccounts@2025-06-01' = {\n  name: 'a'\n  location: 'l'\n  kind: 'StorageV2'\n  sku: { name: 'Standard_LSR' }\n}\n",
			want: []string{"main.bicep:5: name of Sku is 'Standard_LSR', and may be Standard_LRS, Standard_GRS, Standard_RAGRS, Standard_ZRS, " +
				"Premium_LRS, Premium_ZRS, Standard_GZRS, Standard_RAGZRS, StandardV2_LRS, StandardV2_GRS, StandardV2_ZRS, StandardV2_GZRS, PremiumV2_LRS, PremiumV2_ZRS"},
		},
		"an object where a text is wanted": {
			template: fmt.Sprintf(namespace, "{ name: { tier: 'Standard' } }"),
			want:     []string{"main.bicep:4: name of SBSku is of the type Basic | Standard | Premium, not object"},
		},
		"a property that is forgotten": {
			template: fmt.Sprintf(namespace, "{ tier: 'Standard' }"),
			want:     []string{"main.bicep:4: SBSku requires the property name"},
		},
		"a property that only Azure writes": {
			template: fmt.Sprintf(queue, "messageCount: 1"),
			want:     []string{"main.bicep:7: messageCount of SBQueueProperties is read-only"},
		},
		"an element of a loop": {
			template: "resource s 'Microsoft.Web/sites@2025-03-01' = {\n  name: 's'\n  location: 'l'\n  properties: {\n    siteConfig: {\n" +
				"      appSettings: [\n        for a in ['b']: {\n          nmae: a\n        }\n      ]\n    }\n  }\n}\n",
			want: []string{"main.bicep:8: NameValuePair has no property nmae"},
		},
		"a name of none of several resources": {
			template: "resource s 'Microsoft.Web/sites@2025-03-01' existing = {\n  name: 's'\n\n  resource p 'basicPublishingCredentialsPolicies' = {\n" +
				"    name: 'sftp'\n    properties: {\n      allow: false\n    }\n  }\n}\n",
			want: []string{"main.bicep:5: name of microsoft.web/sites/basicpublishingcredentialspolicies is sftp, and may be ftp, scm"},
		},
		"a resource that Azure has not": {
			template: "resource n 'Microsoft.ServiceBus/namespace@2026-01-01' = {\n  name: 'n'\n}\n",
			want:     []string{"main.bicep:1: the types of Microsoft.ServiceBus/namespace: status 404: The given key 'microsoft.servicebus/namespace' was not present in the dictionary."},
		},
	}
	sources := make(map[string]string)
	for name, tt := range tests {
		sources[name] = tt.template
	}
	trees := parse(t, sources)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mismatches(t, map[string]*node{"main.bicep": trees[name]}); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
