// SPDX-License-Identifier: Apache-2.0

package toolsearch

import "strings"

// alike lists words that people and the authors of tools use for the same thing. A word
// finds the others of its line too, for less than itself.
const alike = `
add create insert make new
append attach
auth authenticate authentication login
calculate compute evaluate
change edit modify patch rewrite set update
chart diagram graph plot
close end finish stop terminate
config configuration option preference setting
convert format transform translate
copy clone duplicate
date day time
db database
delete destroy drop erase purge remove
describe detail explain info information inspect metadata
dir directory folder
doc docs document documentation
download fetch get load obtain read retrieve
email mail
env environment
exec execute launch run start
find look lookup query search
image img photo picture screenshot
issue bug ticket
join combine concatenate merge
kubernetes k8s
link uri url
list show enumerate display
message msg
move rename
note memo
open visit
page website site web
person user people
pr pull
press tap
project workspace
remember memory store save
repo repository
reply respond answer comment
send post publish share
shell command terminal
sum total
table sheet spreadsheet
task todo
temperature weather forecast
upload put write
video movie clip
wait pause sleep
`

// synonyms maps the stem of a word to the stems of the words that are used for it.
var synonyms = func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(alike) {
		var stems []string
		for word := range strings.FieldsSeq(line) {
			stems = append(stems, stem(word))
		}
		for i, one := range stems {
			for j, other := range stems {
				if i != j && one != other {
					all[one] = append(all[one], other)
				}
			}
		}
	}
	return all
}()
