package tablestore

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// The account of the storage emulators. Its key is public and the same everywhere
// (https://learn.microsoft.com/azure/storage/common/storage-use-azurite).
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	developmentHost    = "http://127.0.0.1"
	developmentPort    = "10002"
)

// connection is what a storage connection string says about the Table service.
type connection struct {
	endpoint  string // of the service, without a query
	account   string
	key       string // base64; "" where there is a signature
	signature string // a shared access signature, without its question mark
}

// parseConnection reads a storage connection string. Like the other Azure SDKs, and unlike
// aztables, it accepts names in any case, UseDevelopmentStorage=true, and an endpoint together with
// a shared access signature. Errors do not contain values.
func parseConnection(text string) (connection, error) {
	fields, err := parseFields(text)
	if err != nil {
		return connection{}, err
	}
	if strings.EqualFold(fields["usedevelopmentstorage"], "true") {
		return developmentConnection(fields["developmentstorageproxyuri"])
	}
	parsed := connection{
		endpoint:  fields["tableendpoint"],
		account:   fields["accountname"],
		key:       fields["accountkey"],
		signature: strings.TrimPrefix(fields["sharedaccesssignature"], "?"),
	}
	if parsed.signature != "" {
		parsed.key = ""
	} else if parsed.account == "" || parsed.key == "" {
		return connection{}, errors.New("it needs AccountName with AccountKey, or SharedAccessSignature")
	}
	if parsed.endpoint == "" {
		if parsed.account == "" {
			return connection{}, errors.New("it needs AccountName or TableEndpoint")
		}
		parsed.endpoint = fmt.Sprintf("%s://%s.table.%s", cmp.Or(fields["defaultendpointsprotocol"], "https"),
			parsed.account, cmp.Or(fields["endpointsuffix"], "core.windows.net"))
	}
	return parsed, nil
}

// parseFields reads Name=value;Name=value, with the names in lower case.
func parseFields(text string) (map[string]string, error) {
	fields := map[string]string{}
	number := 0
	for field := range strings.SplitSeq(text, ";") {
		number++
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		name, value, ok := strings.Cut(field, "=")
		if !ok {
			return nil, fmt.Errorf("its part %d is not of the form Name=value", number)
		}
		fields[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return fields, nil
}

func developmentConnection(proxy string) (connection, error) {
	host := strings.TrimSuffix(cmp.Or(proxy, developmentHost), "/")
	if u, err := url.Parse(host); err != nil || u.Host == "" || u.Port() != "" {
		return connection{}, errors.New("its DevelopmentStorageProxyUri is not of the form http://HOST")
	}
	return connection{
		endpoint: host + ":" + developmentPort + "/" + developmentAccount,
		account:  developmentAccount,
		key:      developmentKey,
	}, nil
}

// connect makes a client. It sends no request.
func (c connection) connect(options azcore.ClientOptions) (*aztables.ServiceClient, error) {
	endpoint := strings.TrimSuffix(c.endpoint, "/")
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errors.New("its TableEndpoint, or what its other fields make of it, is not of the form https://HOST")
	}
	clientOptions := aztables.ClientOptions{ClientOptions: options}
	if c.signature != "" {
		return aztables.NewServiceClientWithNoCredential(endpoint+"/?"+c.signature, &clientOptions)
	}
	credential, err := aztables.NewSharedKeyCredential(c.account, c.key)
	if err != nil {
		return nil, errors.New("its AccountKey is not base64: copy the key whole")
	}
	return aztables.NewServiceClientWithSharedKey(endpoint, credential, &clientOptions)
}
