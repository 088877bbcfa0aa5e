// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"slices"
	"strings"
)

// alike lists words that people and the authors of tools use for the same thing. A word
// finds the others of its line too, for less than itself.
const alike = `
active current running
add create insert make new register
analyze analyse analysis examine inspect
answer reply respond comment
append attach
archive store
assign delegate assignee owner
auth authenticate authentication login logon signin
authorize permission access grant role
browse navigate visit open goto
bug ticket issue defect problem
build compile
calculate compute evaluate
cancel abort
change edit modify patch rewrite set update alter
channel room
chart diagram graph plot draw visualize
check validate verify lint
click tap press touch push
clone copy duplicate replicate
close end finish stop terminate kill shutdown
combine join merge concatenate unite
complete finish done
config configuration option preference setting settings
connect link attach relate associate
convert format transform translate turn
customer client buyer
date day time
db database
delete destroy drop erase purge remove
deploy deployment ship release rollout publish
describe detail details explain info information inspect metadata
dir directory folder
distance far
doc docs document documentation
download fetch get load obtain read retrieve
email mail
employee staff worker
environment env variable
error failure exception crash
exec execute launch run start begin
export save dump
extract pull scrape grab crawl
fake mock stub simulate emulate pretend
field column attribute property
find look lookup query search
hide conceal
history revision version changelog log
image img photo picture screenshot icon
invite add
invoice bill
key secret token credential
label tag
language locale
link uri url address
list show enumerate display
lock protect
member people person user users colleague
message msg text chat
metric statistic stats measure
mobile phone device smartphone
mouse pointer
move rename relocate transfer reorder
note memo remark
notification alert inbox notify
open visit
organization organisation company
page website site web
package dependency library
pause wait sleep
password credential
pending waiting unread
pr pull
mr merge
price cost fee
project workspace
remember memory store save
reminder remind
repo repository
report summary overview
restore recover revert undo rollback reset
review feedback
row record entry item
schedule plan calendar
section group
send post publish share submit
sheet worksheet tab
shell command terminal
sort order reorder rank
sprint iteration cycle
story task ticket
sum total count number aggregate
table sheet spreadsheet
task todo assignment
team group
temperature weather forecast
type enter write fill
upload put write
video movie clip recording
website site
word keyword term
kubernetes k8s kubectl cluster
`

// said lists words in the names of tools. The first word of a line is found by the others, which
// people say instead, and does not find them.
const said = `
account login who
article study studies paper trial
card saved question
client customer
command disk cpu full log machine
contact customer supplier vendor company
describe which structure
detail phone opening hours close closes rating
direction car train plane cycle
funnel drop off landing
index faster slow
lint follow style rules
listing flat apartment house rental bed night
list which have
orientation upright sideways held rotated
relative ago since until
resource object consist
script work out compute
section column stage
simulator iphone ipad
timestamp unix epoch
transport train plane bus ferry
treemap nested rectangles sizes
uninstall remove
user whose account
verify taken free exist exists
accommodation hotel stay lodging room
activity happened history done
aged overdue owe owes unpaid old
alert alarm warning
appointment meeting
approve accept ok agree
artifact output result
assign give hand owner responsible mine
attachment file document picture
attraction sights sightseeing
authenticate signin
automation whenever automatically every
backup safe copy
balance left remaining
blame wrote author who line
block paragraph
broadcast everyone all
bulk many all several
calendar meeting appointment agenda
card ticket
changelog changes news
checklist points
checkout switch
cherry single one
citation cite quote reference bibliography
clean untracked junk throw
clear empty
clipboard paste
clone download copy
collaborator colleague member works
command restart
comment remark feedback say write opinion
commit save
complete finish tick check done
connection log connect string
console errors messages
container docker image
contact person address
coordinate position latitude longitude
count how many number
crawl all whole
create file open write start make draft plan
credit refund
css style font color colour look
current now today
customer buyer client
cycle sprint
delete forget rid throw away
dependency depends after before blocks needs
dependent before after
deploy ship live online
describe details
device phone tablet
diagnose why wrong broken problem
dialog popup alert
diff changed changes difference
direction way drive route walk go
distance far long trip
download disk
duplicate copy same twice
edge arrow line connect
elevation height high altitude sea
emoji thumbs smile heart
emulate pretend slow
engagement phoned called call met
environment staging production variables
evaluate javascript script
event meeting appointment
excel xlsx xls workbook
execute run numbers
explain why slow
export file image
extract pull out
favorite star bookmark like
fill enter complete
flaky unreliable sometimes intermittent randomly
forget delete
fork own copy
form survey questionnaire
format bold italic color
forward reach localhost
funnel drop visitors conversion
geocode address street coordinates
get which what show
group folder
heap memory leak
health alive up
history past changes
hover over
incident outage emergency
index faster fast speed
inbox new
insert put place
install put setup
interact press type
invoice bill charge
iteration sprint
itinerary trip travel journey stops route
kill hang hangs
label mark
layout design
leave vacation holiday absence
lighthouse accessibility seo
lint style rules follow correct
list which what show all exist know
location pretend paris city
log output print prints
map where
mapping typed types fields
merge land
message tell say
milestone deadline
mock fake
monitor whenever
move put
navigate go
note written
notification news new
objective goal aim
oncall duty
optimize faster
organization company reporting
orientation landscape portrait
overview summary
paper article study scientific science
payment paid pay
payable bills
payroll salary wages
permission who allowed access
place restaurant bar cafe shop
post say write
press hit
priority urgent important
process program
productivity done achieved
profit earn earned earnings revenue income
protect nobody prevent keep straight
push send
query how many orders
quota limit still left
quote offer
reaction emoji like
reason tricky puzzle
receivable owe owes
record row keep capture
relation link blocks duplicates
reminder remind
reorder before order sequence
replace swap
replica copies
report risk
request sent
rerank relevance
rerun again once retry
reschedule next postpone
research investigation thorough
reset undo
resize large small
resource which pods running
restart reboot
restore bring back
review write wrote
revision version earlier
rollback previous back
rollout revision previous
row line
scale copies
schema fields structure
scrape grab text
screencast record
screenshot capture
section heading
share colleague
sheet tab
simulator iphone emulator
slide presentation
spell spelling typo
sql data
stash aside later
statistic numbers
status progress ready green going risk
story requirement
style look
subscribe follow
subtask smaller pieces break split
sync line
tag version mark
task reminder
terminate quit
test checks
thread conversation
timesheet hours worked
trace slow record
transcript said spoken subtitle
transport train bus flight
uncomplete reopen mistake
underused smaller waste
unread new
upcoming next soon
update change set give
upload attach
upsert store
user who people person kind
validate correct
webhook call callback whenever
whoami my username
`

// synonyms maps the stem of a word to the stems of the words that are used for it.
var synonyms = func() map[string][]string {
	all := map[string][]string{}
	add := func(one, other string) {
		if one != other && !slices.Contains(all[one], other) {
			all[one] = append(all[one], other)
		}
	}
	for line := range strings.Lines(alike) {
		var stems []string
		for word := range strings.FieldsSeq(line) {
			stems = append(stems, stem(word))
		}
		for _, one := range stems {
			for _, other := range stems {
				add(one, other)
			}
		}
	}
	for line := range strings.Lines(said) {
		all := strings.Fields(line)
		for _, word := range all[min(1, len(all)):] {
			add(stem(word), stem(all[0]))
		}
	}
	return all
}()
