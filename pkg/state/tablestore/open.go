package tablestore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/connectionstring"
)

// OpenWithConnectionString opens a table with a storage connection string: an account key, a shared
// access signature, or UseDevelopmentStorage=true.
//
// It makes no request: the first Commit creates a missing table, so that a command that only reads writes
// nothing. options may set transport and telemetry; the store sets the retries, since a tick has a deadline.
func OpenWithConnectionString(connectionString, table string, options azcore.ClientOptions) (*Store, error) {
	parsed, err := connectionstring.ParseStorage(connectionString)
	if err != nil {
		return nil, fmt.Errorf("open state table %s: the storage connection string %w", table, err)
	}
	service, err := connect(parsed, withRetries(options))
	if err != nil {
		return nil, fmt.Errorf("open state table %s: the storage connection string cannot be used: %w", table, err)
	}
	u, _ := url.Parse(parsed.Endpoint) // ParseStorage has checked it
	name := azurecli.Table.Resource(u.Host)
	using := signIn{"account key", "copy it again from the storage account",
		azurecli.InGroup("storage account show-connection-string", "--name", name, "--query", "connectionString")}
	if parsed.Signature != "" {
		using = signIn{"shared access signature", "issue one for the Table service that is not expired and allows read, add, update, delete and query",
			azurecli.Command("storage account generate-sas", "--account-name", name, "--services", "t", "--resource-types", "sco",
				"--permissions", "rwdlacu", "--expiry", "EXPIRY", "--https-only")}
	}
	return &Store{client: service.NewClient(table), table: table, host: u.Host, signIn: using}, nil
}

func connect(s connectionstring.Storage, options azcore.ClientOptions) (*aztables.ServiceClient, error) {
	clientOptions := aztables.ClientOptions{ClientOptions: options}
	if s.Signature != "" {
		return aztables.NewServiceClientWithNoCredential(s.Endpoint+"/?"+s.Signature, &clientOptions)
	}
	credential, err := aztables.NewSharedKeyCredential(s.Account, s.Key)
	if err != nil {
		return nil, errors.New("its AccountKey is refused") // the SDK's error may have the key
	}
	return aztables.NewServiceClientWithSharedKey(s.Endpoint, credential, &clientOptions)
}

// OpenWithIdentity opens a table with an identity, which needs the role Storage Table Data
// Contributor. serviceURL is https://ACCOUNT.table.core.windows.net, or that of another cloud. Requests and
// options are as for OpenWithConnectionString.
func OpenWithIdentity(serviceURL, table string, credential azcore.TokenCredential, options azcore.ClientOptions) (*Store, error) {
	u, err := url.Parse(serviceURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("open state table %s: its service is to be given as https://ACCOUNT.table.core.windows.net", table)
	}
	service, err := aztables.NewServiceClient(strings.TrimSuffix(serviceURL, "/"), credential, &aztables.ClientOptions{ClientOptions: withRetries(options)})
	if err != nil {
		return nil, fmt.Errorf("open state table %s: %w", table, err)
	}
	using := signIn{"identity", "assign it the role " + role + ", and wait some minutes", azurecli.Assign(role, azurecli.Table.ID(u.Host))}
	return &Store{client: service.NewClient(table), table: table, host: u.Host, signIn: using}, nil
}

// withRetries sets few and short retries, since the next tick tries again.
func withRetries(options azcore.ClientOptions) azcore.ClientOptions {
	options.Retry = policy.RetryOptions{
		MaxRetries:    2,
		TryTimeout:    10 * time.Second, // the service itself answers a query within 5 s
		RetryDelay:    200 * time.Millisecond,
		MaxRetryDelay: 2 * time.Second,
	}
	return options
}
