package check

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// The commands of this file are those of the Azure CLI's reference
// (https://learn.microsoft.com/cli/azure/reference-index). What is not known
// stands in them as a word in capitals.
const (
	unknownGroup   = "RESOURCE_GROUP"
	unknownObject  = "OBJECT_ID"
	unknownAddress = "PUBLIC_IP"
)

// serviceKind is what the commands for a kind of service have in common.
type serviceKind struct {
	name     string // of the resource, where its host does not tell: in capitals
	zone     string // first label of the host's domain, and of that of private endpoints
	tag      string // service tag of network rules
	provider string // of its resource ids, up to the name
}

// The kinds.
var (
	cosmosService = serviceKind{"ACCOUNT", "documents", "AzureCosmosDB", "Microsoft.DocumentDB/databaseAccounts/"}
	tableService  = serviceKind{"STORAGE_ACCOUNT", "table", "Storage", "Microsoft.Storage/storageAccounts/"}
	busService    = serviceKind{"NAMESPACE", "servicebus", "ServiceBus", "Microsoft.ServiceBus/namespaces/"}
)

// azure reports whether the host is one of Azure's, as in shop.documents.azure.com.
func (e serviceEndpoint) azure() bool {
	labels := strings.Split(e.host, ".")
	return len(labels) > 3 && labels[1] == e.kind.zone
}

// resource is the name of the resource behind the host.
func (e serviceEndpoint) resource() string {
	if !e.azure() {
		return e.kind.name
	}
	name, _, _ := strings.Cut(e.host, ".")
	return name
}

// resourceID is the resource id, as the scope of a role.
func (e serviceEndpoint) resourceID() string {
	return "/subscriptions/SUBSCRIPTION/resourceGroups/" + unknownGroup + "/providers/" + e.kind.provider + e.resource()
}

// name is the host, with the port where it is not the usual one.
func (e serviceEndpoint) name() string {
	usual := map[bool]string{true: "443", false: "80"}[e.tls]
	if e.url == "" {
		usual = amqpsPort
	}
	if e.port == usual {
		return e.host
	}
	return net.JoinHostPort(e.host, e.port)
}

// nameFix mends a host that is not found.
func (e serviceEndpoint) nameFix() string {
	correct := "correct the host in setting " + e.setting
	if !e.azure() {
		return correct
	}
	_, domain, _ := strings.Cut(e.host, ".")
	return commandLine("az network private-dns link vnet create", "--resource-group", unknownGroup, "--zone-name", "privatelink."+domain,
		"--name", "feedscale", "--virtual-network", "VNET", "--registration-enabled", "false") + "   # with a private endpoint; otherwise " + correct
}

// routeFix mends a port that is not reached.
func (e serviceEndpoint) routeFix() string {
	if !e.azure() {
		if address, err := netip.ParseAddr(e.host); e.host == "localhost" || err == nil && address.IsLoopback() {
			return fmt.Sprintf("start what is to listen at %s, or correct setting %s", net.JoinHostPort(e.host, e.port), e.setting)
		}
		return fmt.Sprintf("open port %s to %s in the firewalls between, or correct setting %s", e.port, e.host, e.setting)
	}
	return commandLine("az network nsg rule create", "--resource-group", unknownGroup, "--nsg-name", "NSG", "--name", "feedscale-"+strings.ToLower(e.kind.tag),
		"--priority", "PRIORITY", "--direction", "Outbound", "--access", "Allow", "--protocol", "Tcp",
		"--destination-address-prefixes", e.kind.tag, "--destination-port-ranges", e.port)
}

// identityFix mends an identity that gives no token, by where this process runs.
func identityFix(getenv func(string) string, i config.Identity) string {
	app, containerApp, group := getenv("WEBSITE_SITE_NAME"), getenv("CONTAINER_APP_NAME"), cmp.Or(getenv("WEBSITE_RESOURCE_GROUP"), unknownGroup)
	switch {
	case i.Credential == config.CredentialWorkloadIdentity:
		return commandLine("az identity federated-credential create", "--name", "feedscale", "--identity-name", "IDENTITY", "--resource-group", unknownGroup,
			"--issuer", "OIDC_ISSUER", "--subject", "system:serviceaccount:NAMESPACE:SERVICE_ACCOUNT", "--audiences", "api://AzureADTokenExchange")
	case containerApp != "" && i.ClientID != "":
		return commandLine("az containerapp identity assign", "--name", containerApp, "--resource-group", unknownGroup, "--user-assigned", "IDENTITY_RESOURCE_ID")
	case containerApp != "":
		return commandLine("az containerapp identity assign", "--name", containerApp, "--resource-group", unknownGroup, "--system-assigned")
	case app == "" && i.Credential == config.CredentialDefault && i.TenantID != "":
		return commandLine("az login", "--tenant", i.TenantID)
	case app == "" && i.Credential == config.CredentialDefault:
		return commandLine("az login")
	}
	assign := []string{"--name", cmp.Or(app, "FUNCTION_APP"), "--resource-group", group}
	if i.ClientID != "" {
		assign = append(assign, "--identities", "IDENTITY_RESOURCE_ID")
	}
	return commandLine("az functionapp identity assign", assign...)
}

// dataReader is the built-in role Cosmos DB Built-in Data Reader, the same in every account.
const dataReader = "00000000-0000-0000-0000-000000000001"

// fix mends a refusal of an account.
func (a cosmosAccess) fix(r *cosmos.Refusal) string {
	name, c := a.endpoint.resource(), r.Container
	switch r.Kind {
	case cosmos.Firewall, cosmos.Forbidden:
		switch r.Route {
		case cosmos.ServiceEndpoint:
			return commandLine("az cosmosdb network-rule add", "--name", name, "--resource-group", unknownGroup, "--virtual-network", "VNET", "--subnet", "SUBNET")
		case cosmos.PrivateEndpoint:
			return commandLine("az cosmosdb private-endpoint-connection approve", "--account-name", name, "--resource-group", unknownGroup, "--name", "CONNECTION")
		}
		return commandLine("az cosmosdb update", "--name", name, "--resource-group", unknownGroup, "--ip-range-filter", "PRESENT_RANGES,"+cmp.Or(r.Address, unknownAddress)) +
			"   # the whole list, which this replaces"
	case cosmos.KeysDisabled:
		return fmt.Sprintf("set %s__accountEndpoint=%s in place of %[1]s, and give the identity the role Cosmos DB Built-in Data Reader", a.Setting, a.endpoint.url)
	case cosmos.KeyRefused:
		return commandLine("az cosmosdb keys list", "--name", name, "--resource-group", unknownGroup, "--type", "connection-strings") + "   # into setting " + a.Setting
	case cosmos.NotPermitted:
		if r.Manager {
			return roleAssignment(a.who, "Cosmos DB Operator", cmp.Or(a.resourceID, a.endpoint.resourceID())) + "   # or a custom role: docs/throughput.md"
		}
		return commandLine("az cosmosdb sql role assignment create", "--account-name", name, "--resource-group", unknownGroup, "--scope", "/",
			"--principal-id", cmp.Or(a.who.object, unknownObject), "--role-definition-id", dataReader)
	case cosmos.Missing:
		switch {
		case r.Leases:
			return commandLine("az cosmosdb sql container create", "--account-name", name, "--resource-group", unknownGroup, "--database-name", c.Database,
				"--name", c.ID, "--partition-key-path", "/id") + "   # or correct leaseContainerId"
		case c.ID != "":
			return commandLine("az cosmosdb sql container list", "--account-name", name, "--resource-group", unknownGroup, "--database-name", c.Database,
				"--query", "[].name", "--output", "tsv") + "   # the names there are, for containerId"
		case c.Database != "":
			return commandLine("az cosmosdb sql database list", "--account-name", name, "--resource-group", unknownGroup,
				"--query", "[].name", "--output", "tsv") + "   # the names there are, for databaseId and leaseDatabaseId"
		}
	case cosmos.Throttled:
		if c.ID != "" {
			return commandLine("az cosmosdb sql container throughput update", "--account-name", name, "--resource-group", unknownGroup, "--database-name", c.Database,
				"--name", c.ID, "--throughput", "REQUEST_UNITS")
		}
	}
	return ""
}

// fix mends a refusal of the Table service.
func (a tableAccess) fix(r *tablestore.Refusal) string {
	name := a.endpoint.resource()
	switch {
	case r.Creating && r.Status == http.StatusForbidden:
		return commandLine("az storage table create", "--name", a.table.Name, "--account-name", name, "--auth-mode", "login")
	case r.Kind == tablestore.KeysDisabled:
		return fmt.Sprintf("set FEEDSCALE_STATE=https://%s.table.core.windows.net/%s, and give the identity the role Storage Table Data Contributor", name, a.table.Name)
	case r.Kind == tablestore.Firewall && a.endpoint.azure(): // Azurite says so of a wrong key
		return commandLine("az storage account network-rule add", "--account-name", name, "--resource-group", unknownGroup, "--ip-address", unknownAddress)
	case r.Kind != tablestore.Firewall && r.Kind != tablestore.NotAccepted && r.Kind != tablestore.NotPermitted:
		return ""
	case !a.ByKey():
		return roleAssignment(a.who, "Storage Table Data Contributor", a.endpoint.resourceID())
	case a.signed():
		return commandLine("az storage account generate-sas", "--account-name", name, "--services", "t", "--resource-types", "sco", "--permissions", "rwdlacu",
			"--expiry", "EXPIRY", "--https-only") + "   # into SharedAccessSignature of setting " + a.Setting
	}
	return commandLine("az storage account show-connection-string", "--name", name, "--resource-group", unknownGroup, "--query", "connectionString", "--output", "tsv") +
		"   # into setting " + a.Setting
}

// fix mends a refusal of the queue.
func (a queueAccess) fix(refused servicebus.Kind) string {
	name := a.endpoint.resource()
	switch {
	case refused == servicebus.QueueNotFound:
		return commandLine("az servicebus queue create", "--resource-group", unknownGroup, "--namespace-name", name, "--name", a.queue,
			"--enable-duplicate-detection", "true", "--duplicate-detection-history-time-window", "PT10M") + "   # or servicebus topic create"
	case refused == servicebus.NetworkDenied:
		return commandLine("az servicebus namespace network-rule-set ip-rule add", "--resource-group", unknownGroup, "--namespace-name", name,
			"--ip-rule", "ip-address="+unknownAddress, "action=Allow")
	case refused == servicebus.NotPermitted && !a.ByKey():
		return roleAssignment(a.who, "Azure Service Bus Data Sender", a.endpoint.resourceID()+"/queues/"+a.queue) + "   # /topics/ where it is a topic"
	case refused == servicebus.NotPermitted:
		return commandLine("az servicebus namespace authorization-rule keys list", "--resource-group", unknownGroup, "--namespace-name", name, "--name", "POLICY",
			"--query", "primaryConnectionString", "--output", "tsv") + "   # of a policy with the Send right, into setting " + a.Setting
	}
	return ""
}

func roleAssignment(who principal, role, scope string) string {
	kind := "ServicePrincipal"
	if who.person {
		kind = "User"
	}
	return commandLine("az role assignment create", "--assignee-object-id", cmp.Or(who.object, unknownObject), "--assignee-principal-type", kind,
		"--role", role, "--scope", scope)
}

// commandLine is a line for a shell. Arguments are quoted where a shell would read
// more into them.
func commandLine(name string, arguments ...string) string {
	line := name
	for _, a := range arguments {
		line += " " + shellWord(a)
	}
	return line
}

func shellWord(text string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=@", r))
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
