package config

import "strings"

// Scaler says how KEDA's external scaler is served (docs/keda-external-scaler.md).
type Scaler struct {
	Listen       string // FEEDSCALE_SCALER_LISTEN, "host:port"; "" = not at all
	CertFile     string // FEEDSCALE_SCALER_CERT_FILE, in PEM; "" = without TLS
	KeyFile      string // FEEDSCALE_SCALER_KEY_FILE, in PEM, of that certificate
	ClientCAFile string // FEEDSCALE_SCALER_CLIENT_CA_FILE, in PEM: the CA of the certificates that clients must show; "" = none
}

func readScaler(e *environment, mistakes *Mistakes) Scaler {
	file := func(name string) string { return strings.TrimSpace(e.setting(name, "")) }
	s := Scaler{
		Listen:       setting(e, mistakes, "FEEDSCALE_SCALER_LISTEN", "", optional(parseListen)),
		CertFile:     file("FEEDSCALE_SCALER_CERT_FILE"),
		KeyFile:      file("FEEDSCALE_SCALER_KEY_FILE"),
		ClientCAFile: file("FEEDSCALE_SCALER_CLIENT_CA_FILE"),
	}
	needs := func(name, value, other, otherValue string) {
		if value != "" && otherValue == "" {
			mistakes.Add(Mistake{Field: name, Text: "is of no use alone; set " + other + " beside it"})
		}
	}
	needs("FEEDSCALE_SCALER_CERT_FILE", s.CertFile, "FEEDSCALE_SCALER_KEY_FILE", s.KeyFile)
	needs("FEEDSCALE_SCALER_KEY_FILE", s.KeyFile, "FEEDSCALE_SCALER_CERT_FILE", s.CertFile)
	needs("FEEDSCALE_SCALER_CLIENT_CA_FILE", s.ClientCAFile, "FEEDSCALE_SCALER_CERT_FILE", s.CertFile)
	return s
}
