package main

import (
	"fmt"
	"testing"
)

func laneRun(id, lane string, weight int64) *Run {
	return &Run{spec: &ExecSpec{ID: id, Lane: lane, weight: weight}}
}

func TestALaneKeepsTheOrderOfArrival(t *testing.T) {
	lanes := Lanes{waiting: map[string][]*Run{}}
	if queued, err := lanes.Enter(laneRun("first", "a", 1)); queued || err != nil {
		t.Fatal("the first of a lane waits", err)
	}
	var line []*Run
	for i := range 5 {
		r := laneRun(fmt.Sprint(i), "a", 1)
		line = append(line, r)
		if queued, err := lanes.Enter(r); !queued || err != nil {
			t.Fatal("a run overtakes the one that runs", err)
		}
	}
	if queued, _ := lanes.Enter(laneRun("other", "b", 1)); queued {
		t.Error("another lane waits")
	}
	if !lanes.Leave(line[2]) || lanes.Leave(line[2]) {
		t.Error("a run leaves its line once")
	}
	for _, want := range []*Run{line[0], line[1], line[3], line[4], nil} {
		if got := lanes.Next("a"); got != want {
			t.Fatalf("%v comes where %v should", got, want)
		}
	}
	if lanes.count != 0 || lanes.bytes != 0 {
		t.Errorf("%d runs with %d bytes are still counted", lanes.count, lanes.bytes)
	}
	if queued, _ := lanes.Enter(laneRun("again", "a", 1)); queued {
		t.Error("a free lane lets nobody in")
	}
}

func TestALaneHasBounds(t *testing.T) {
	lanes := Lanes{waiting: map[string][]*Run{"a": nil}}
	if _, err := lanes.Enter(laneRun("large", "a", waitingBytesMax+1)); err != nil {
		t.Error("a large command has no room although nobody waits:", err)
	}
	if _, err := lanes.Enter(laneRun("more", "a", 1)); err == nil {
		t.Error("the bytes have no bound")
	}
	lanes = Lanes{waiting: map[string][]*Run{"a": nil}}
	for i := range waitingMax {
		if _, err := lanes.Enter(laneRun(fmt.Sprint(i), "a", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := lanes.Enter(laneRun("more", "a", 1)); asFault(err).Code != "lane_full" {
		t.Error("the runs have no bound")
	}
}
