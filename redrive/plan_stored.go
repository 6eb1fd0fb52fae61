package redrive

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// planVersion is the version of stored plans.
const planVersion = 1

// storedPlan is the JSON of a plan. The counts and names are for readers; a run needs the letters,
// and finds the rest again.
type storedPlan struct {
	V           int              `json:"v"`
	ID          string           `json:"id"`
	Created     time.Time        `json:"createdAt"`
	Topic       string           `json:"topic"`
	TopicID     string           `json:"topicId,omitempty"`
	Source      string           `json:"source"`
	Ledger      string           `json:"ledger"`
	Target      Target           `json:"target"`
	MaxRedrives int              `json:"maxRedrives,omitempty"`
	MaxAttempts int              `json:"maxAttempts,omitempty"`
	Edit        editRecord       `json:"edit,omitzero"`
	Letters     int64            `json:"letters"`
	ByClass     map[string]int64 `json:"byClass"`
	ByPartition map[int32]int64  `json:"byPartition"`
	ByGroup     map[string]int64 `json:"byGroup"`
	Targets     map[string]int64 `json:"targets"`
	SeenBy      []string         `json:"seenBy"`
	Watched     []string         `json:"watched"`
	Skipped     map[string]int64 `json:"skipped"`
	Warnings    []string         `json:"warnings"`

	Chosen       []piece             `json:"chosen"`
	Epochs       map[int32]int32     `json:"epochs,omitempty"`
	Destinations []storedDestination `json:"destinations"`
	Duplicates   []storedDuplicate   `json:"duplicates,omitempty"`
	// topics with the original records of letters without a value
	Originals []string  `json:"originals,omitempty"`
	Oldest    time.Time `json:"oldest"`
	Unknown   int64     `json:"unknown,omitempty"`
	Unfit     string    `json:"unfit,omitempty"`
	Unread    string    `json:"unread,omitempty"`
	// by reason, the first letter that is skipped
	First map[string]string `json:"first,omitempty"`

	// of the JSON without this field
	Checksum string `json:"checksum,omitempty"`
}

type storedDestination struct {
	Group     string `json:"group"`
	Partition int32  `json:"partition"`
	Letters   int64  `json:"letters"`
}

type storedDuplicate struct {
	Partition int32 `json:"partition"`
	Offset    int64 `json:"offset"`
	Letter    int64 `json:"letter"`
}

// MarshalJSON returns the plan as JSON, with everything that [Redriver.Run] needs in another
// process. Of the selection it has no filter, since the letters are chosen. An edit is part of it,
// and may be personal data.
func (p Plan) MarshalJSON() ([]byte, error) {
	if p.topics == nil && p.stored == nil {
		return nil, errors.New("redrive: the plan is empty: make it by Redriver.Plan")
	}
	s := storedPlan{
		V: planVersion, ID: p.ID, Created: p.Created, Topic: p.Selection.Topic, TopicID: idText(p.topicID),
		Target: p.Selection.Target, MaxRedrives: p.Selection.MaxRedrives, MaxAttempts: p.Selection.MaxAttempts, Edit: editRecord{p.Selection.Edit},
		Letters: p.Letters, ByClass: p.ByClass, ByPartition: p.ByPartition, ByGroup: p.ByGroup, Targets: p.Targets,
		SeenBy: p.SeenBy, Watched: p.Watched, Skipped: p.Skipped, Warnings: p.Warnings,
		Originals: slices.Sorted(maps.Keys(p.elsewhere)), Oldest: p.oldest, Unknown: p.unknown, Unread: p.unread, First: p.first, Epochs: p.epochs,
	}
	if p.unfit != nil {
		s.Unfit = p.unfit.Error()
	}
	if s.Source, s.Ledger = p.names(); len(p.by) > 0 {
		for d, n := range p.by {
			s.Destinations = append(s.Destinations, storedDestination{d.group, d.partition, n})
		}
		slices.SortFunc(s.Destinations, func(a, b storedDestination) int {
			return cmp.Or(strings.Compare(a.Group, b.Group), cmp.Compare(a.Partition, b.Partition))
		})
	}
	s.Chosen = piecesIn(p.chosen)
	for _, d := range p.duplicates {
		s.Duplicates = append(s.Duplicates, storedDuplicate{d.Partition, d.Offset, d.letter})
	}
	sum, err := s.sum()
	if err != nil {
		return nil, err
	}
	s.Checksum = sum
	return json.Marshal(s)
}

// sum returns the checksum.
func (s storedPlan) sum() (string, error) {
	s.Checksum = ""
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// errEditedPlan reports a stored plan that is not as it was written.
var errEditedPlan = errors.New("it is not as it was stored: its checksum does not fit, or a field is unknown: plan again")

// UnmarshalJSON reads a plan that MarshalJSON wrote. It returns an error if the text was edited, is
// incomplete, or is of a newer version. White space does not matter.
func (p *Plan) UnmarshalJSON(text []byte) error {
	got, err := parsePlan(text)
	if err != nil {
		return fmt.Errorf("redrive: stored plan: %w", err)
	}
	*p = *got
	return nil
}

func parsePlan(text []byte) (*Plan, error) {
	var version struct{ V int }
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, err
	}
	switch {
	case version.V > planVersion:
		return nil, fmt.Errorf("it has version %d, and this siding reads version %d: use a newer siding", version.V, planVersion)
	case version.V < 1:
		return nil, errors.New("it names no version, so it is no stored plan")
	}
	var s storedPlan
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("%w (%w)", errEditedPlan, err)
	}
	if sum, err := s.sum(); err != nil || sum != s.Checksum {
		return nil, errEditedPlan
	}
	p := &Plan{
		Selection: Selection{Topic: s.Topic, Target: s.Target, MaxRedrives: s.MaxRedrives, MaxAttempts: s.MaxAttempts, Edit: s.Edit.Edit},
		ID:        s.ID, Created: s.Created, Letters: s.Letters, ByClass: s.ByClass, ByPartition: s.ByPartition, ByGroup: s.ByGroup,
		Targets: s.Targets, SeenBy: s.SeenBy, Watched: s.Watched, Skipped: s.Skipped, Warnings: s.Warnings,
		topicID: parseID(s.TopicID), stored: &storedNames{s.Source, s.Ledger}, chosen: letters.Set{}, by: map[destination]int64{}, elsewhere: map[string]bool{},
		oldest: s.Oldest, unknown: s.Unknown, unread: s.Unread, first: s.First, epochs: s.Epochs,
	}
	if s.Unfit != "" {
		p.unfit = errors.New(s.Unfit)
	}
	for _, c := range s.Chosen {
		if err := c.addTo(p.chosen); err != nil {
			return nil, err
		}
	}
	for _, d := range s.Destinations {
		p.by[destination{d.Group, d.Partition}] = d.Letters
	}
	for _, d := range s.Duplicates {
		p.duplicates = append(p.duplicates, duplicate{letters.At(d.Partition, d.Offset), d.Letter})
	}
	for _, topic := range s.Originals {
		p.elsewhere[topic] = true
	}
	if p.ID == "" || strings.Contains(p.ID, "/") || p.chosen.Len() != p.Letters || p.Letters == 0 {
		return nil, errEditedPlan
	}
	return p, p.Selection.validate()
}

// storedNames are the topics of a stored plan, by the naming of the process that made it.
type storedNames struct{ source, ledger string }

// names returns the source and the ledger of the plan.
func (p *Plan) names() (source, ledger string) {
	if p.topics == nil {
		return p.stored.source, p.stored.ledger
	}
	return p.topics.source, p.topics.ledger
}
