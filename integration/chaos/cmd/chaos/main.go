// Command chaos runs the chaos suite of siding: consumers in processes of their own, on brokers
// that fail. See package chaos.
package main

import (
	"os"

	"github.com/sidingkafka/siding/integration/chaos"
)

func main() { os.Exit(chaos.Main(chaos.Config{})) }
