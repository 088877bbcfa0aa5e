// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/jsonc"
	"github.com/consort-go/consort/internal/terminal"
)

// maxFile bounds a file of another host. Claude Code also keeps its history there.
const maxFile = 64 << 20

// places are the folders where hosts keep their files.
type places struct {
	Home   string // of the user
	Config string // as os.UserConfigDir returns it
	Work   string // the working directory: a project
}

// userPlaces returns the places of this process. A place that is unknown is empty.
func userPlaces() places {
	home, _ := os.UserHomeDir()
	folder, _ := os.UserConfigDir()
	work, _ := os.Getwd()
	return places{home, folder, work}
}

// hostFile is a file where a host keeps MCP servers.
type hostFile struct {
	host    string
	path    string
	project string // the folder that it belongs to; empty for a file of the user
	dialect dialect
}

// dialect describes the differences between the files of hosts.
type dialect struct {
	key      string // of the servers
	nested   bool   // it also has servers per project, under projects.PATH.mcpServers
	sseURL   bool   // url is an address of the older transport with server-sent events
	plainVar bool   // a variable may be written as $NAME
}

// hostFiles returns where the hosts keep their servers, according to:
//
//   - Claude Desktop: https://modelcontextprotocol.io/docs/develop/connect-local-servers
//   - Claude Code: https://code.claude.com/docs/en/mcp
//   - Cursor: https://cursor.com/docs/mcp
//   - VS Code: https://code.visualstudio.com/docs/agents/reference/mcp-configuration
//   - Windsurf: https://docs.windsurf.com/windsurf/cascade/mcp
//   - Gemini CLI: https://geminicli.com/docs/tools/mcp-server
//
// Claude Desktop documents macOS and Windows; elsewhere the same path below the
// configuration folder is used. The files of a project come before the user's files.
func hostFiles(p places) []hostFile {
	servers := dialect{key: "mcpServers"}
	code := dialect{key: "servers"}
	gemini := dialect{key: "mcpServers", sseURL: true, plainVar: true}
	var files []hostFile
	add := func(host, project string, d dialect, folder string, path ...string) {
		if folder != "" {
			files = append(files, hostFile{host, filepath.Join(append([]string{folder}, path...)...), project, d})
		}
	}
	if p.Work != p.Home {
		add("Claude Code", p.Work, servers, p.Work, ".mcp.json")
		add("Cursor", p.Work, servers, p.Work, ".cursor", "mcp.json")
		add("VS Code", p.Work, code, p.Work, ".vscode", "mcp.json")
		add("Gemini CLI", p.Work, gemini, p.Work, ".gemini", "settings.json")
	}
	add("Claude Desktop", "", servers, p.Config, "Claude", "claude_desktop_config.json")
	add("Claude Code", "", dialect{key: "mcpServers", nested: true}, p.Home, ".claude.json")
	add("Cursor", "", servers, p.Home, ".cursor", "mcp.json")
	add("VS Code", "", code, p.Config, "Code", "User", "mcp.json")
	add("Windsurf", "", servers, p.Home, ".codeium", "windsurf", "mcp_config.json")
	add("Gemini CLI", "", gemini, p.Home, ".gemini", "settings.json")
	return files
}

// label names the file for people.
func (f hostFile) label() string { return f.host + " (" + terminal.ShortPath(f.path) + ")" }

// read returns the servers in the file by name; nil without such a file. whole reports
// that they are all at its top level, and that config imports the file as it is: it refuses
// large files, and values that are not of the kind it expects.
func (f hostFile) read(p places) (servers map[string]json.RawMessage, whole bool, err error) {
	data, err := readFile(f.path)
	if os.IsNotExist(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(jsonc.Plain(data), &members); err != nil {
		return nil, false, err
	}
	servers = map[string]json.RawMessage{}
	if text := members[f.dialect.key]; text != nil {
		if err := json.Unmarshal(text, &servers); err != nil {
			return nil, false, err
		}
	}
	_, problem := config.Parse(f.path, data, nil)
	if !f.dialect.nested || p.Work == "" {
		return servers, problem == nil, nil
	}
	var projects map[string]struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if text := members["projects"]; text != nil {
		if err := json.Unmarshal(text, &projects); err != nil {
			return nil, false, err
		}
	}
	own := projects[p.Work].Servers
	maps.Copy(servers, own) // they hide the user's servers of the same name
	return servers, problem == nil && len(own) == 0, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err // PowerShell 5 writes a byte order mark
}

// survey has the servers of other hosts.
type survey struct {
	Servers []*server
	skipped []skipped
}

// skipped is a server, or a whole file, that cannot be imported.
type skipped struct {
	Name   string // of the server; empty for the file
	From   string
	Reason string
}

// findServers reads the files of other hosts and returns their servers, in the order of the hosts.
// Servers that are disabled there are left out. The same server of several hosts is found
// once; another one of the same name gets the name of its host added.
func findServers(p places) *survey {
	found := &survey{}
	for _, file := range hostFiles(p) {
		servers, whole, err := file.read(p)
		if err != nil {
			found.skipped = append(found.skipped, skipped{From: file.label(), Reason: err.Error()})
			continue
		}
		origin := &origin{file: file, whole: whole}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			server, reason := newServer(origin, name, servers[name])
			switch {
			case reason != "":
				origin.whole = false
				found.skipped = append(found.skipped, skipped{name, file.label(), reason})
			case server != nil:
				found.add(server)
			default:
				origin.whole = false // a disabled server
			}
		}
	}
	return found
}

// add adds a server, unless there is the same one already.
func (f *survey) add(s *server) {
	for n := 1; ; n++ {
		name := s.name(n)
		i := slices.IndexFunc(f.Servers, func(other *server) bool { return other.Name == name })
		if i < 0 {
			s.origin.whole = s.origin.whole && name == s.Name
			s.Name = name
			f.Servers = append(f.Servers, s)
			s.origin.servers++
			return
		}
		if f.Servers[i].table == s.table {
			f.Servers[i].From = append(f.Servers[i].From, s.From...)
			s.origin.whole = false
			return
		}
	}
}

// Named returns the found servers with these names, and the names that are unknown.
func (f *survey) Named(names []string) (servers []*server, unknown []string) {
	for _, name := range names {
		i := slices.IndexFunc(f.Servers, func(s *server) bool { return s.Name == name })
		if i < 0 {
			unknown = append(unknown, name)
			continue
		}
		servers = append(servers, f.Servers[i])
	}
	slices.SortFunc(servers, func(a, b *server) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(servers), unknown
}
