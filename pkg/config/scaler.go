package config

import "strings"

// Scaler says how KEDA's external scaler is served (docs/keda-external-scaler.md).
type Scaler struct {
	Listen       string // FEEDSCALE_SCALER_LISTEN, "host:port"; "" = not at all
	CertFile     string // FEEDSCALE_SCALER_CERT_FILE, in PEM; "" = without TLS
	KeyFile      string // FEEDSCALE_SCALER_KEY_FILE, in PEM, of that certificate
	ClientCAFile string // FEEDSCALE_SCALER_CLIENT_CA_FILE, in PEM: the CA of the certificates that clients must show; "" = none
}

func readScaler(raw variables, mistakes *Mistakes) Scaler {
	s := Scaler{CertFile: strings.TrimSpace(raw.ScalerCert), KeyFile: strings.TrimSpace(raw.ScalerKey), ClientCAFile: strings.TrimSpace(raw.ScalerClientCA)}
	if raw.ScalerListen != "" {
		s.Listen = setting(mistakes, "FEEDSCALE_SCALER_LISTEN", raw.ScalerListen, parseListen)
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
