// SPDX-License-Identifier: Apache-2.0

package access

import "crypto/x509"

// CertificateNames returns the names in a certificate: its alternative names (RFC 5280, section
// 4.2.1.6), or the common name if it has none.
func CertificateNames(certificate *x509.Certificate) []string {
	var names []string
	for _, uri := range certificate.URIs {
		names = append(names, uri.String())
	}
	names = append(append(names, certificate.DNSNames...), certificate.EmailAddresses...)
	if len(names) == 0 {
		names = append(names, certificate.Subject.CommonName)
	}
	return names
}
