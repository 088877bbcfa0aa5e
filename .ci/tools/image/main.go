// SPDX-License-Identifier: Apache-2.0

// Image writes a container image as an OCI archive, without a container engine: the
// program for each architecture, the certificates of public authorities, and two empty
// folders. The rest of its configuration comes from the last stage of a Containerfile. The
// same input makes the same bytes; SOURCE_DATE_EPOCH is the time of everything in it.
//
//	image -containerfile FILE -output FILE.tar -version V amd64=PROGRAM arm64=PROGRAM
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The media types of the OCI image specification 1.1 (§ media-types).
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// descriptor refers to a blob (§ Content Descriptors).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// settings say how to run the image (§ OCI Image Configuration).
type settings struct {
	User         string              `json:",omitempty"`
	ExposedPorts map[string]struct{} `json:",omitempty"`
	Env          []string            `json:",omitempty"`
	Entrypoint   []string            `json:",omitempty"`
	Cmd          []string            `json:",omitempty"`
	WorkingDir   string              `json:",omitempty"`
	Labels       map[string]string   `json:",omitempty"`
}

func main() {
	containerfile := flag.String("containerfile", "docs/deploy/Containerfile", "take the settings from `FILE`")
	output := flag.String("output", "image.tar", "write the archive to `FILE`")
	version := flag.String("version", "", "the `VERSION` of the program")
	flag.Parse()
	if err := run(*containerfile, *output, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(containerfile, output, version string, programs []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil || len(programs) == 0 {
		return errors.New("needs SOURCE_DATE_EPOCH and programs, as ARCHITECTURE=FILE")
	}
	text, err := os.ReadFile(containerfile)
	if err != nil {
		return err
	}
	a := &archive{at: time.Unix(seconds, 0).UTC(), blobs: map[string][]byte{}}
	if a.settings, err = settingsOf(string(text)); err != nil {
		return fmt.Errorf("%s: %w", containerfile, err)
	}
	a.settings.Labels = map[string]string{
		"org.opencontainers.image.title": "consort", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
	}
	var manifests []descriptor
	for _, given := range programs {
		architecture, file, _ := strings.Cut(given, "=")
		program, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		manifests = append(manifests, a.image(architecture, program))
	}
	index := a.put(indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": version}
	return os.WriteFile(output, a.tar(index), 0o644)
}

// settingsOf reads the last stage of a Containerfile. Instructions that copy files are left
// out: this program knows the files.
func settingsOf(text string) (s settings, err error) {
	stage := text[strings.LastIndex(text, "\nFROM ")+1:]
	for line := range strings.Lines(stage) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "FROM":
			if rest != "scratch" {
				err = errors.New("the last stage is not FROM scratch")
			}
		case "ENV":
			s.Env = append(s.Env, rest)
		case "USER":
			s.User = rest
		case "WORKDIR":
			s.WorkingDir = rest
		case "EXPOSE":
			s.ExposedPorts = map[string]struct{}{}
			for _, port := range strings.Fields(rest) {
				s.ExposedPorts[port+"/tcp"] = struct{}{}
			}
		case "ENTRYPOINT":
			err = errors.Join(err, json.Unmarshal([]byte(rest), &s.Entrypoint))
		case "CMD":
			err = errors.Join(err, json.Unmarshal([]byte(rest), &s.Cmd))
		case "", "#", "COPY":
		default:
			err = fmt.Errorf("what does %s mean?", name)
		}
	}
	return s, err
}

// archive is an OCI image layout (§ image-layout) in the making.
type archive struct {
	at       time.Time
	settings settings
	blobs    map[string][]byte // by digest
}

// image adds the image of one architecture and returns the descriptor of its manifest.
func (a *archive) image(architecture string, program []byte) descriptor {
	layer := a.layer(program)
	at := a.put(layerType, json.RawMessage(nil), layer...)
	config := a.put(configType, map[string]any{
		"created": a.at, "architecture": architecture, "os": "linux", "config": a.settings,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{at.Digest}},
		"history": []any{map[string]any{"created": a.at, "created_by": ".ci/tools/image"}},
	})
	manifest := a.put(manifestType, map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{at}})
	manifest.Platform = &platform{Architecture: architecture, OS: "linux"}
	return manifest
}

// put adds a blob: raw, or else the JSON form of value.
func (a *archive) put(mediaType string, value any, raw ...byte) descriptor {
	if raw == nil {
		raw, _ = json.Marshal(value) // maps and structs of strings and numbers have a JSON form
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
	a.blobs[digest] = raw
	return descriptor{MediaType: mediaType, Digest: digest, Size: len(raw)}
}

const user = 65532

// layer returns the files of the image as a tar.
func (a *archive) layer(program []byte) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, folder := range []string{"etc", "etc/ssl", "etc/ssl/certs"} {
		a.add(w, folder+"/", 0o755, 0, nil)
	}
	a.add(w, "etc/ssl/certs/ca-certificates.crt", 0o644, 0, certificates())
	a.add(w, "tmp/", 0o1777, user, nil)
	a.add(w, "usr/", 0o755, 0, nil)
	a.add(w, "usr/bin/", 0o755, 0, nil)
	a.add(w, "usr/bin/consort", 0o755, 0, program)
	a.add(w, "var/", 0o755, 0, nil)
	a.add(w, "var/lib/", 0o755, 0, nil)
	a.add(w, "var/lib/consort/", 0o700, user, nil)
	w.Close()
	return out.Bytes()
}

// add adds a file, or a folder if its name ends with a slash. Writes to memory do not fail.
func (a *archive) add(w *tar.Writer, name string, mode int64, owner int, content []byte) {
	header := &tar.Header{Name: name, Mode: mode, Uid: owner, Gid: owner, Size: int64(len(content)), ModTime: a.at, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if strings.HasSuffix(name, "/") {
		header.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(header); err != nil {
		panic(err)
	}
	w.Write(content)
}

// certificates returns the roots that Mozilla trusts without constraints, in PEM. Files in
// PEM cannot express the constraints of the others.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// tar returns the layout as a tar.
func (a *archive) tar(index descriptor) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	a.add(w, "oci-layout", 0o644, 0, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	top, _ := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{index}})
	a.add(w, "index.json", 0o644, 0, top)
	a.add(w, "blobs/", 0o755, 0, nil)
	a.add(w, "blobs/sha256/", 0o755, 0, nil)
	digests := make([]string, 0, len(a.blobs))
	for digest := range a.blobs {
		digests = append(digests, digest)
	}
	slices.Sort(digests)
	for _, digest := range digests {
		a.add(w, path.Join("blobs/sha256", strings.TrimPrefix(digest, "sha256:")), 0o644, 0, a.blobs[digest])
	}
	w.Close()
	return out.Bytes()
}
