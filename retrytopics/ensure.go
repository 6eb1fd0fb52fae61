package retrytopics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Ensure provisions the siblings of source topics by the spec's mode. It reports its changes, and
// how existing siblings differ from those that it would have created. Repeated and concurrent calls
// are harmless: a topic that another instance created meanwhile is treated as an existing one.
//
// With [Create], Ensure creates missing siblings with as many partitions and replicas as their
// source, and grows them when the source has grown. It then waits until the cluster shows their
// partitions, as long as ctx allows and a minute at most. It never changes the configs of existing
// topics: the report lists the weaker ones, with the command that changes each. With [Verify] it
// changes nothing. A broker that does not know a topic yet which another one shows is asked again
// for ten seconds.
//
// Ensure first checks, and returns an error with every problem before it changes anything. Problems
// are invalid siblings or an invalid spec, a source topic that does not exist, and a missing
// permission to describe. An existing sibling that would lose records is a problem too: it is
// compacted, limited by size, or kept shorter than its delay needs. If siblings are missing or too
// small and may not be provisioned, the error is a [*ProvisionError] with the commands to run. The
// report holds the changes before an error.
//
// Ensure requests all topics at once: one metadata request, one for configs, and one for each
// distinct shape of topic to create.
func Ensure(ctx context.Context, adm *kadm.Client, spec Spec, siblings ...Siblings) (Report, error) {
	if spec.Mode == Off || len(siblings) == 0 {
		return Report{}, nil
	}
	if err := errors.Join(Check(siblings...), spec.Validate(siblings...)); err != nil {
		return Report{}, fmt.Errorf("retrytopics: %w", err)
	}
	if adm == nil {
		return Report{}, errors.New("retrytopics: there is no admin client")
	}
	e := ensurer{adm: adm, spec: spec}
	if err := e.run(ctx, siblings); err != nil {
		return e.report, fmt.Errorf("retrytopics: %w", err)
	}
	return e.report, nil
}

// visibleTimeout bounds the wait for topics that the cluster confirmed. A controller shows them
// within a second; after a minute something else is wrong, and a caller without a deadline should
// get an error.
const visibleTimeout = time.Minute

// ensurer is one call of Ensure.
type ensurer struct {
	adm    *kadm.Client
	spec   Spec
	report Report

	names  []string          // every source and sibling
	wants  []wanted          // every sibling, in the order given
	topics map[string]*topic // those of names that exist
}

func (e *ensurer) run(ctx context.Context, siblings []Siblings) error {
	for _, s := range siblings {
		e.names = append(append(e.names, s.Source), s.Topics()...)
	}
	if err := e.readCluster(ctx, siblings); err != nil {
		return err
	}
	missing, small := e.incomplete()
	if e.spec.Mode == Verify {
		errs := []error{e.compare(e.wants)}
		if len(missing)+len(small) > 0 {
			errs = append(errs, provisionError(missing, small, nil))
		}
		return errors.Join(errs...)
	}
	if err := e.compare(e.wants); err != nil {
		return err
	}
	if len(missing)+len(small) == 0 {
		return nil
	}
	foreign, err := e.provision(ctx, missing, small)
	if err != nil {
		return err
	}
	return e.awaitVisible(ctx, missing, small, foreign)
}

// readCluster reads the cluster and derives the wanted siblings.
func (e *ensurer) readCluster(ctx context.Context, siblings []Siblings) error {
	if err := e.awaitSources(ctx, siblings); err != nil {
		return err
	}
	e.report.count(e.topics)
	if err := describeConfigs(ctx, e.adm, e.topics, slices.Sorted(maps.Keys(e.topics))); err != nil {
		return err
	}
	for _, s := range siblings {
		e.wants = append(e.wants, e.spec.wants(s, e.topics[s.Source])...)
	}
	return nil
}

// awaitSources reads the topics until all sources exist, for knownTimeout at most: the broker that
// is asked may learn of a new topic later than the one that created it.
func (e *ensurer) awaitSources(ctx context.Context, siblings []Siblings) error {
	return untilKnown(ctx, func() (known bool, err error) {
		if e.topics, err = describe(ctx, e.adm, e.names); err != nil {
			return true, err
		}
		var errs []error
		for _, s := range siblings {
			if e.topics[s.Source] == nil {
				errs = append(errs, fmt.Errorf("topic %q does not exist: create it; siding creates the siblings of a source, never the source", s.Source))
			}
		}
		return len(errs) == 0, errors.Join(errs...)
	})
}

// incomplete returns the siblings that do not exist or have too few partitions.
func (e *ensurer) incomplete() (missing, small []wanted) {
	for _, w := range e.wants {
		switch t := e.topics[w.topic]; {
		case t == nil:
			missing = append(missing, w)
		case t.partitions < w.partitions:
			small = append(small, w)
		}
	}
	return missing, small
}

// compare adds differences to the report, and returns those that lose records.
func (e *ensurer) compare(wants []wanted) error {
	var errs []error
	for _, w := range wants {
		if t := e.topics[w.topic]; t != nil {
			differences, refusals := w.compare(t, e.topics[w.dlq])
			e.report.Differences = append(e.report.Differences, differences...)
			errs = append(errs, refusals...)
		}
	}
	return errors.Join(errs...)
}

// provision creates and grows topics. It returns the topics that another instance created since the
// cluster was read.
func (e *ensurer) provision(ctx context.Context, missing, small []wanted) (foreign []wanted, err error) {
	var (
		errs               []error
		why                []error // refused, as a permission is missing
		noCreate, noGrowth []wanted
	)
	for _, group := range alike(missing, wanted.shape) {
		w := group[0]
		configs := make(map[string]*string, len(w.configs))
		for name, value := range w.configs {
			configs[name] = kadm.StringPtr(value)
		}
		rs, err := e.adm.CreateTopics(ctx, w.partitions, w.replicas, configs, topicsOf(group)...)
		if err != nil {
			errs = append(errs, fmt.Errorf("create topics %q: %w", topicsOf(group), err))
			continue
		}
		for _, w := range group {
			r, err := rs.On(w.topic, nil)
			if err == nil {
				err = r.Err
			}
			switch {
			case err == nil, errors.Is(err, kerr.RequestTimedOut):
				// Timed out: the controller continues, and awaitVisible waits.
				e.report.Created = append(e.report.Created, w.topic)
			case errors.Is(err, kerr.TopicAlreadyExists):
				foreign = append(foreign, w)
			case isDenied(err):
				noCreate = append(noCreate, w)
				why = append(why, fmt.Errorf("create topic %q: grant the operation CREATE on it or on the cluster: %w", w.topic, withMessage(err, r.ErrMessage)))
			default:
				errs = append(errs, fmt.Errorf("create topic %q with %d partitions, replication factor %d: %w%s", w.topic, w.partitions, w.replicas, withMessage(err, r.ErrMessage), wayOut(w.configs, err, r.ErrMessage)))
			}
		}
	}
	for _, group := range alike(small, func(w wanted) string { return fmt.Sprint(w.partitions) }) {
		rs, err := e.adm.UpdatePartitions(ctx, int(group[0].partitions), topicsOf(group)...)
		if err != nil {
			errs = append(errs, fmt.Errorf("grow topics %q: %w", topicsOf(group), err))
			continue
		}
		for _, w := range group {
			r, err := rs.On(w.topic, nil)
			if err == nil {
				err = r.Err
			}
			switch {
			case err == nil, errors.Is(err, kerr.RequestTimedOut):
				e.report.Grown = append(e.report.Grown, Growth{Topic: w.topic, From: e.topics[w.topic].partitions, To: w.partitions})
			case errors.Is(err, kerr.InvalidPartitions):
				// Another instance grew it; awaitVisible checks whether it is large enough.
			case isDenied(err):
				noGrowth = append(noGrowth, w)
				why = append(why, fmt.Errorf("grow topic %q: grant the operation ALTER on it: %w", w.topic, withMessage(err, r.ErrMessage)))
			default:
				errs = append(errs, fmt.Errorf("grow topic %q to %d partitions: %w", w.topic, w.partitions, withMessage(err, r.ErrMessage)))
			}
		}
	}
	if len(why) > 0 {
		errs = append(errs, provisionError(noCreate, noGrowth, errors.Join(why...)))
	}
	return foreign, errors.Join(errs...)
}

// awaitVisible waits until the cluster shows the created and grown topics. A topic that another
// instance created is treated as an existing one, and grown if it is too small: that instance may
// have read the source before it grew.
func (e *ensurer) awaitVisible(ctx context.Context, missing, small, foreign []wanted) error {
	wait, cancel := context.WithTimeoutCause(ctx, visibleTimeout, fmt.Errorf("not visible after %s", visibleTimeout))
	defer cancel()
	askedToGrow := map[string]bool{}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		lacking, err := e.lacking(wait, missing, small)
		if err != nil {
			return err
		}
		if len(lacking) == 0 {
			break
		}
		var grow []wanted
		for _, w := range foreign {
			if t := e.topics[w.topic]; t != nil && t.partitions < w.partitions && !askedToGrow[w.topic] {
				askedToGrow[w.topic] = true
				grow = append(grow, w)
			}
		}
		if _, err := e.provision(wait, nil, grow); err != nil {
			return err
		}
		if err := sleep(wait, pause); err != nil {
			return fmt.Errorf("wait for topics (%s): %w", strings.Join(lacking, "; "), err)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	if err := describeConfigs(ctx, e.adm, e.topics, topicsOf(foreign)); err != nil {
		return err
	}
	return e.compare(foreign)
}

// lacking reads the cluster and returns the parts that are not visible yet.
func (e *ensurer) lacking(ctx context.Context, missing, small []wanted) ([]string, error) {
	topics, err := describe(ctx, e.adm, e.names)
	if err != nil {
		if kerr.IsRetriable(err) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			return []string{err.Error()}, nil
		}
		return nil, err
	}
	for name, t := range topics {
		if old := e.topics[name]; old != nil {
			t.configs = old.configs
		}
	}
	e.topics = topics
	e.report.count(topics)

	var lacking []string
	for _, w := range slices.Concat(missing, small) {
		switch t := topics[w.topic]; {
		case t == nil:
			lacking = append(lacking, fmt.Sprintf("%s is not visible", w.topic))
		case t.partitions < w.partitions:
			lacking = append(lacking, fmt.Sprintf("%s shows %d of %d partitions", w.topic, t.partitions, w.partitions))
		}
	}
	// Only new topics must have their leaders: a partition of an existing topic may be offline,
	// which concerns its lane only.
	for _, w := range missing {
		if t := topics[w.topic]; t != nil && t.led < t.partitions {
			lacking = append(lacking, fmt.Sprintf("%s has no leader for %d partitions", w.topic, t.partitions-t.led))
		}
	}
	return lacking, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func isDenied(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

func provisionError(missing, small []wanted, why error) *ProvisionError {
	u := &ProvisionError{Err: why, Topics: slices.Concat(topicsOf(missing), topicsOf(small))}
	for _, w := range missing {
		u.Commands = append(u.Commands, w.createCommand())
	}
	for _, w := range small {
		u.Commands = append(u.Commands, w.growCommand())
	}
	return u
}

// shape distinguishes topics that one request cannot create together.
func (w wanted) shape() string { return fmt.Sprint(w.partitions, w.replicas, w.configs) }

// alike groups by a key, in the order in which the keys first appear.
func alike(ws []wanted, key func(wanted) string) [][]wanted {
	var groups [][]wanted
	at := map[string]int{}
	for _, w := range ws {
		k := key(w)
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

func topicsOf(ws []wanted) []string {
	names := make([]string, len(ws))
	for i, w := range ws {
		names[i] = w.topic
	}
	return names
}
