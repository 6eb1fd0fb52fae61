package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestMembership_CommitEndsWhileTheMemberJoins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMembership()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, _, err := m.Hold(ctx); err == nil {
			t.Fatal("held while the member joins")
		}
		go func() {
			time.Sleep(time.Second)
			m.SetJoining(false)
		}()
		held, release, err := m.Hold(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		lost := make(chan struct{})
		go func() {
			m.Lost()
			close(lost)
		}()
		<-held.Done() // what is under way when the membership is lost is void, and ends
		release()
		<-lost
		ctx2, cancel2 := context.WithTimeout(context.Background(), time.Second)
		defer cancel2()
		if _, _, err := m.Hold(ctx2); err == nil {
			t.Fatal("held after the membership was lost")
		}
	})
}
