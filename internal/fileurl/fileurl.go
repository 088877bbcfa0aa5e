// SPDX-License-Identifier: Apache-2.0

// Package fileurl converts the paths of files to URLs and back (RFC 8089).
package fileurl

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Of returns the URL of an absolute path. C:/x of Windows is file:///C:/x.
func Of(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// Path returns the path of a URL, or "" if it is not a URL of a file on this machine.
func Path(uri string) string {
	address, err := url.Parse(uri)
	if err != nil || address.Scheme != "file" || address.Host != "" && address.Host != "localhost" {
		return ""
	}
	path := address.Path
	if rest := strings.TrimPrefix(path, "/"); filepath.VolumeName(filepath.FromSlash(rest)) != "" {
		path = rest
	}
	return filepath.FromSlash(path)
}
