package connectionstring_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/connectionstring"
)

func TestTheEndpointOfAStorageAccountShowsNothingThatSignsIn(t *testing.T) {
	t.Parallel()
	const key, signature = "c2VjcmV0IGtleQ==", "c2lnbmF0dXJl"
	const keyed = "AccountName=shop;AccountKey=" + key
	for text, want := range map[string]string{
		keyed: "https://shop.table.core.windows.net",
		"TableEndpoint=https://shop.table.core.windows.net;SharedAccessSignature=sv=1&sig=" + signature: "https://shop.table.core.windows.net",
		"UseDevelopmentStorage=true":                    "http://127.0.0.1:10002/devstoreaccount1",
		keyed + ";EndpointSuffix=core.chinacloudapi.cn": "https://shop.table.core.chinacloudapi.cn",
	} {
		if got, err := connectionstring.ParseStorage(text); err != nil || got.Endpoint != want {
			t.Errorf("%q, %v; want %q", got.Endpoint, err, want)
		}
	}
	if _, err := connectionstring.ParseStorage("AccountKey=" + key); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("got %v, want an error without the key", err)
	}
}
