package config_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/config"
)

const clientID = "11111111-2222-3333-4444-555555555555"

func TestCosmosConnection(t *testing.T) {
	t.Parallel()
	key := config.NewSecret(testKey)
	byKey := config.CosmosConnection{Setting: "COSMOS", Endpoint: "https://shop.documents.azure.com/", Host: "shop.documents.azure.com", Key: key}
	byIdentity := byKey
	byIdentity.Key = config.Secret{}
	assigned := byIdentity
	assigned.Identity = config.Identity{Credential: config.CredentialManagedIdentity, ClientID: clientID}
	workload := byIdentity
	workload.Identity = config.Identity{Credential: config.CredentialWorkloadIdentity, TenantID: "contoso"}
	principal := byIdentity
	principal.Identity = config.Identity{TenantID: "contoso", ClientID: clientID, Secret: key}
	scoped := byIdentity
	scoped.TokenScope = "https://cosmos.azure.com/.default"
	standIn := scoped
	standIn.TokenScope = "http://127.0.0.1:8081/.default"
	emulator := byKey
	emulator.Endpoint, emulator.Host = "http://localhost:8081/", "localhost"
	spelled := byKey
	spelled.Host = "Shop.Documents.azure.com"

	for _, c := range []struct {
		name     string
		settings map[string]string
		want     config.CosmosConnection
	}{
		{"a connection string as the portal shows it", map[string]string{"COSMOS": "AccountEndpoint=https://shop.documents.azure.com:443/;AccountKey=" + testKey + ";"}, byKey},
		{"fields in any order and case", map[string]string{"COSMOS": " accountkey = " + testKey + " ; ACCOUNTENDPOINT = https://shop.documents.azure.com "}, byKey},
		{"other fields have no effect", map[string]string{"COSMOS": "Database=shop;AccountEndpoint=https://shop.documents.azure.com/;DisableServerCertificateValidation=True;AccountKey=" + testKey}, byKey},
		{"another port is kept", map[string]string{"COSMOS": "AccountEndpoint=http://localhost:8081;AccountKey=" + testKey}, emulator},
		{"the host keeps its spelling for the lease ids of Java", map[string]string{"COSMOS": "AccountEndpoint=https://Shop.Documents.azure.com:443/;AccountKey=" + testKey}, spelled},
		{"an endpoint alone signs in with an identity", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com:443/"}, byIdentity},
		{"a colon is as good as two underscores", map[string]string{"COSMOS:accountEndpoint": "https://shop.documents.azure.com:443/"}, byIdentity},
		{"an endpoint with a key", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com:443/", "COSMOS__accountKey": testKey}, byKey},
		{"a user-assigned identity", map[string]string{
			"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__credential": "managedIdentity", "COSMOS__clientId": clientID}, assigned},
		{"a workload identity", map[string]string{
			"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__credential": "workloadidentity", "COSMOS__tenantId": "contoso"}, workload},
		{"a service principal", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com/",
			"COSMOS__tenantId": "contoso", "COSMOS__clientId": clientID, "COSMOS__clientSecret": testKey}, principal},
		{"a scope for the identity's token", map[string]string{
			"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__tokenScope": " https://cosmos.azure.com/.default "}, scoped},
		{"the scope of a stand-in", map[string]string{
			"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__tokenScope": "http://127.0.0.1:8081/.default"}, standIn},
		{"an empty scope is none", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__tokenScope": " "}, byIdentity},
		{"an empty scope beside a key is none", map[string]string{
			"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__accountKey": testKey, "COSMOS__tokenScope": ""}, byKey},
		{"a connection string wins over fields", map[string]string{
			"COSMOS": "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey, "COSMOS__accountEndpoint": "https://other.documents.azure.com/"}, byKey},
		{"AzureWebJobs in front, as the host looks first", map[string]string{
			"AzureWebJobsCOSMOS": "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey, "COSMOS__accountEndpoint": "https://other.documents.azure.com/"}, byKey},
		{"among the ConnectionStrings", map[string]string{"ConnectionStrings__COSMOS": "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey}, byKey},
		{"an empty setting is none", map[string]string{"AzureWebJobsCOSMOS": " ", "COSMOS": "", "COSMOS__accountEndpoint": "https://shop.documents.azure.com"}, byIdentity},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.ParseCosmosConnection(lookupIn(c.settings), "COSMOS")
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if got.UsesIdentity() != c.want.Key.IsZero() {
				t.Errorf("UsesIdentity: got %v", got.UsesIdentity())
			}
		})
	}
}

func TestCosmosConnectionMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		settings map[string]string
		want     string
	}{
		{"missing", nil, "the setting COSMOS is missing; set COSMOS to a connection string, or COSMOS__accountEndpoint to "},
		{"a key without an endpoint is as good as nothing", map[string]string{"COSMOS__accountKey": testKey}, "the setting COSMOS is missing"},
		{"no key", map[string]string{"COSMOS": "AccountEndpoint=https://shop.documents.azure.com/;"}, "the setting COSMOS has no AccountKey; "},
		{"no endpoint", map[string]string{"COSMOS": "AccountKey=" + testKey}, "the setting COSMOS has no AccountEndpoint; "},
		{"an address where a connection string belongs", map[string]string{"COSMOS": "https://shop.documents.azure.com/"}, "the setting COSMOS is an address; "},
		{"a bare key", map[string]string{"COSMOS": strings.TrimRight(testKey, "=")}, "the setting COSMOS is no connection string: part 1 "},
		{"a field twice", map[string]string{"COSMOS": "AccountKey=" + testKey + ";AccountKey=" + testKey}, "part 2 of it is not name=value, or repeats a name; copy the connection string whole, once"},
		{"a truncated key", map[string]string{"COSMOS": "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey[:13]}, "the setting COSMOS (AccountKey) is not base64"},
		{"a bad key beside an endpoint", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__accountKey": testKey + "!"}, "the setting COSMOS__accountKey is not base64"},
		{"a host without a scheme", map[string]string{"COSMOS__accountEndpoint": "shop.documents.azure.com"}, "the setting COSMOS__accountEndpoint is not an address; allowed is https://HOST/"},
		{"another scheme", map[string]string{"COSMOS__accountEndpoint": "sb://shop.documents.azure.com"}, "is not an address"},
		{"no host", map[string]string{"COSMOS__accountEndpoint": "https://:443/"}, "is not an address"},
		{"a port out of range", map[string]string{"COSMOS__accountEndpoint": "https://shop:70000/"}, "is not an address"},
		{"a path", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com/dbs"}, "is not an address"},
		{"a password in the address", map[string]string{"COSMOS__accountEndpoint": "https://me:" + testKey + "@shop.documents.azure.com"}, "is not an address"},
		{"an unknown credential", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__credential": "password"}, "the setting COSMOS__credential is not supported"},
		{"a certificate is not passed over", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__certificate": testKey}, "the setting COSMOS__certificate is not supported"},
		{"a client secret alone", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__clientSecret": testKey}, "the setting COSMOS__clientSecret is that of a service principal; set __tenantId and __clientId"},
		{"a client secret without a tenant", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__clientSecret": testKey, "COSMOS__clientId": clientID}, "set __tenantId and __clientId"},
		{"a client secret of a managed identity", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__clientSecret": testKey, "COSMOS__clientId": clientID,
			"COSMOS__tenantId": "contoso", "COSMOS__credential": "managedidentity"}, "the setting COSMOS__clientSecret is for a service principal"},
		{"a resource id of something else", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__resourceId": "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/shop"},
			"the setting COSMOS__resourceId is not the resource id of an account; allowed is /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.DocumentDB/databaseAccounts/NAME"},
		{"a client id that is none", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__clientId": "my-identity"}, "the setting COSMOS__clientId is not the client id"},
		{"a scope without /.default", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__tokenScope": "https://cosmos.azure.com"},
			"the setting COSMOS__tokenScope is not the scope of a token; allowed is https://HOST/.default, such as https://cosmos.azure.com/.default, or leave it out"},
		{"a scope that is no address", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__tokenScope": "cosmos.azure.com/.default"}, "allowed is https://HOST/.default"},
		{"a scope of another scheme", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__tokenScope": "api://cosmos/.default"}, "allowed is https://HOST/.default"},
		{"a scope of no host", map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__tokenScope": "https:///.default"}, "allowed is https://HOST/.default"},
		{"a scope beside a key", map[string]string{
			"COSMOS__accountEndpoint": "https://shop.documents.azure.com", "COSMOS__accountKey": testKey, "COSMOS__tokenScope": "https://cosmos.azure.com/.default"},
			"the setting COSMOS__tokenScope is for an identity, and a key signs in; leave it out, or "},
		{"a scope beside a connection string", map[string]string{
			"COSMOS": "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey, "COSMOS__tokenScope": "https://cosmos.azure.com/.default"},
			"the setting COSMOS__tokenScope is for an identity, and a key signs in; leave it out, or "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.ParseCosmosConnection(lookupIn(c.settings), "COSMOS")
			contains(t, err, c.want)
		})
	}
}

func TestConnectionStringInPlaceOfASettingsNameIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"AccountKey=" + testKey, testKey + testKey, "a b", ""} {
		_, err := config.ParseCosmosConnection(lookupIn(nil), name)
		contains(t, err, "is not the name of a setting")
	}
}

func TestServiceBusConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                        string
		settings                    map[string]string
		namespace, connectionString string
		identity                    config.Identity
	}{
		{"a connection string as the portal shows it", map[string]string{"BUS": "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=" + testKey},
			"shop.servicebus.windows.net", "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=" + testKey, config.Identity{}},
		{"fields in any order and case, of the queue", map[string]string{"BUS": "entitypath=Scale;sharedaccesskey=" + testKey + ";ENDPOINT=sb://shop.servicebus.windows.net;SharedAccessKeyName=send;TransportType=Amqp;"},
			"shop.servicebus.windows.net", "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=" + testKey, config.Identity{}},
		{"a signature", map[string]string{"BUS": "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessSignature=SharedAccessSignature sr=shop&sig=x&se=1&skn=send"},
			"shop.servicebus.windows.net", "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessSignature=SharedAccessSignature sr=shop&sig=x&se=1&skn=send", config.Identity{}},
		{"an emulator", map[string]string{"BUS": "Endpoint=sb://localhost:5673;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=True;"},
			"localhost:5673", "Endpoint=sb://localhost:5673/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true", config.Identity{}},
		{"an identity", map[string]string{"BUS__fullyQualifiedNamespace": "shop.servicebus.windows.net", "BUS__clientId": clientID},
			"shop.servicebus.windows.net", "", config.Identity{ClientID: clientID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.ParseServiceBusConnection(lookupIn(c.settings), "BUS", "scale")
			if err != nil {
				t.Fatal(err)
			}
			if got.Namespace != c.namespace || got.ConnectionString.Reveal() != c.connectionString || got.Identity != c.identity {
				t.Errorf("got %+v with %q", got, got.ConnectionString.Reveal())
			}
			if got.UsesIdentity() != (c.connectionString == "") {
				t.Errorf("UsesIdentity: got %v", got.UsesIdentity())
			}
		})
	}
}

func TestServiceBusConnectionMistakes(t *testing.T) {
	t.Parallel()
	const namespace = "Endpoint=sb://shop.servicebus.windows.net/;"
	for _, c := range []struct {
		name     string
		settings map[string]string
		want     string
	}{
		{"missing", nil, "the setting BUS is missing; set BUS to a connection string, or BUS__fullyQualifiedNamespace to "},
		{"no endpoint", map[string]string{"BUS": "SharedAccessKeyName=a;SharedAccessKey=" + testKey}, "the setting BUS is no connection string of Service Bus: its Endpoint is not an address; allowed is sb://HOST/"},
		{"no key", map[string]string{"BUS": namespace + "SharedAccessKeyName=a"}, "the setting BUS does not sign in"},
		{"of another queue", map[string]string{"BUS": namespace + "SharedAccessKeyName=a;SharedAccessKey=" + testKey + ";EntityPath=orders"}, `is for the entity "orders" (EntityPath), not for the queue "scale"`},
		{"a bad emulator flag", map[string]string{"BUS": namespace + "SharedAccessKeyName=a;SharedAccessKey=" + testKey + ";UseDevelopmentEmulator=perhaps"}, "has a bad UseDevelopmentEmulator"},
		{"a namespace with a scheme", map[string]string{"BUS__fullyQualifiedNamespace": "sb://shop.servicebus.windows.net/"}, "the setting BUS__fullyQualifiedNamespace is not a host name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.ParseServiceBusConnection(lookupIn(c.settings), "BUS", "scale")
			contains(t, err, c.want)
		})
	}
}

func TestStorageConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, mistake string }{
		{"Azurite", "UseDevelopmentStorage=true", ""},
		{"an account with its key", "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=" + testKey + ";EndpointSuffix=core.windows.net", ""},
		{"a signature", "TableEndpoint=https://shop.table.core.windows.net/;SharedAccessSignature=sv=2024&sig=x%3D", ""},
		{"no key", "AccountName=shop", "the setting STORAGE does not sign in"},
		{"no account", "AccountKey=" + testKey, "the setting STORAGE names no account"},
		{"a truncated key", "AccountName=shop;AccountKey=" + testKey[:13], "the setting STORAGE has no usable AccountKey: it is not base64"},
		{"development storage switched off", "UseDevelopmentStorage=false", "names no account; allowed is AccountName="},
		{"a text", "shop", "the setting STORAGE is no connection string"},
		{"nothing", "", "the setting STORAGE is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			read, err := config.ReadSettings([]string{"FEEDSCALE_STATE=table:STORAGE/feedscale", "STORAGE=" + c.text})
			if c.mistake != "" {
				contains(t, err, c.mistake)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := read.State.Table.ConnectionString.Reveal(); got != c.text {
				t.Errorf("got %q", got)
			}
		})
	}
}
