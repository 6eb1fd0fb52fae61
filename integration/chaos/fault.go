package chaos

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
)

// faultKind is a kind of fault that a run injects.
type faultKind struct {
	name  string
	needs brokers.Capability
	// What it does, as in trace.Window.
	infra, parts, down bool
	// do injects the fault, waits, and heals it. It returns early if the run is being healed.
	do func(*execution, *rand.Rand)
}

// faultKinds are all faults.
var faultKinds = []faultKind{
	{name: "kill", do: endMember((*crewMember).kill)},
	{name: "term", do: endMember((*crewMember).term)},
	{name: "join", do: join},
	{name: "suspend", do: suspend},
	{name: "tiers", do: changeTiers},
	{name: "grow", do: grow},
	{name: "redrive", do: redriveLetters},
	{name: "outage", down: true, do: letFail(outage.All, 100, 100)},
	{name: "tenants", down: true, do: letFail(outage.Tenants, 30, 70)},
	{name: "chance", down: true, do: letFail(outage.Chance, 30, 90)},
	{name: "flaps", down: true, do: letFail(outage.Flaps, 100, 100)},
	{name: "stuck", do: stickHandler},
	{name: "large", do: writeLarge},
	{name: "transaction", infra: true, do: openTransaction},
	{name: "node", needs: brokers.CanProxy | brokers.CanEnd, infra: true, parts: true, do: takeNode(brokers.Cluster.End, brokers.Cluster.Begin, 10*time.Second)},
	{name: "restart", needs: brokers.CanRestart, infra: true, parts: true, do: restartBrokers},
	{name: "older", needs: brokers.CanRestart, infra: true, parts: true, do: loseEnd},
	{name: "cut", needs: brokers.CanProxy, infra: true, parts: true, do: cutConnections},
	{name: "delay", needs: brokers.CanProxy, infra: true, parts: true, do: delayConnections},
	{name: "freeze", needs: brokers.CanFreeze, infra: true, parts: true, do: takeNode(freeze(true), freeze(false), 12*time.Second)},
	{name: "answers", needs: brokers.CanAnswer, infra: true, parts: true, do: answerWithErrors},
	{name: "leaders", needs: brokers.CanAnswer, infra: true, do: order(brokers.Cluster.MoveLeaders)},
	{name: "coordinators", needs: brokers.CanAnswer, infra: true, parts: true, do: order(brokers.Cluster.MoveCoordinators)},
	{name: "dlq", needs: brokers.CanRefuse, infra: true, do: refuseLetters},
	{name: "rights", needs: brokers.CanDeny, infra: true, do: takeRights},
}

// kindNamed returns the kind of fault of a name.
func kindNamed(name string) faultKind {
	return faultKinds[slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == name })]
}

// possible returns the names of the faults that brokers allow.
func possible(can brokers.Capability) (names []string) {
	for _, k := range faultKinds {
		if k.needs&^can == 0 {
			names = append(names, k.name)
		}
	}
	return names
}

// Faults returns the names of all faults, for Config.Only.
func Faults() []string {
	names := make([]string, len(faultKinds))
	for i, k := range faultKinds {
		names[i] = k.name
	}
	return names
}
