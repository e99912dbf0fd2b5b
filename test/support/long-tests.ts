/** Long test files that mostly wait: for programs, timers and pages. They use less than half of a processor. */
export const waiting: readonly string[] = [
  'test/process/upgrade.test.ts',
  'test/process/abuse.test.ts',
  'test/process/money-kill.test.ts',
  'test/process/rotation-sales.test.ts',
  'test/process/renewals.test.ts',
  'test/process/chaos.test.ts',
  'test/process/owner-moves.test.ts',
  'test/process/moves-interrupted.test.ts',
  'test/process/board-test.test.ts',
  'test/process/scenarios.test.ts',
  'test/browser/acceptance-touches.test.ts',
  'test/process/restored-cloud.test.ts',
  'test/browser/owner-console.test.ts',
  'test/browser/outages.test.ts',
  'test/process/cut-off.test.ts',
  'test/browser/console.test.ts',
  'test/process/proxies.test.ts',
  'test/process/move-and-retire.test.ts',
  'test/browser/commissioning.test.ts',
  'test/process/owners-are-notified.test.ts',
  'test/browser/docs.test.ts',
  'test/process/webhook-kill.test.ts',
  'test/process/backup.test.ts',
  'test/browser/journeys.test.ts',
  'test/process/demo.test.ts',
  'test/browser/hub-page.test.ts',
  'test/browser/shop.test.ts',
  'test/browser/hub-page-people.test.ts',
  'test/process/rotation.test.ts',
  'test/process/silent-connections.test.ts',
  'test/process/updates.test.ts',
  'test/process/operating.test.ts',
  'test/process/cells.test.ts',
  'test/process/two-clouds.test.ts',
  'test/process/desired-state.test.ts',
  'test/process/firmware-update.test.ts',
  'test/process/postgres-versions.test.ts',
  'test/process/management/over-ssh.test.ts',
  'test/process/stopping.test.ts',
  'test/browser/refill.test.ts',
  'test/browser/owner-hubs.test.ts',
  'test/process/database-fails.test.ts',
  'test/process/postgres-server.test.ts',
  'test/browser/owner-people.test.ts',
  'test/browser/owner-acts.test.ts',
  'test/process/storage-fails.test.ts',
  'test/process/enrolment.test.ts',
  'test/browser/shop-cards.test.ts',
  'test/browser/hub-page-away.test.ts',
  'test/browser/shop-failures.test.ts',
  'test/browser/hub-page-tls.test.ts',
  'test/process/guides.test.ts',
  'test/browser/shop-focus.test.ts',
  'test/browser/shop-lists.test.ts',
  'test/process/wrong-clock.test.ts',
  'test/process/firmware-sale.test.ts',
  'test/process/full-disk.test.ts',
  'test/process/pgbouncer.test.ts',
  'test/browser/frames.test.ts',
]

/** Long test files that keep a processor busy. */
const busy: readonly string[] = [
  'test/simulation/swarm.test.ts',
  'test/process/package.test.ts',
  'test/simulation/mutants-noticed.test.ts',
  // Honest callers are measured here.
  'test/process/crowds.test.ts',
  'test/cloud/commerce/analytics/two-years.test.ts',
  'test/cloud/platform/http/uploads.test.ts',
  'test/contract/sensor-faults.test.ts',
  'test/contract/every-alarm.test.ts',
  'test/simulator/board-test/planted-faults.test.ts',
  'test/cloud/commerce/payments/money-sequences.test.ts',
  'test/simulation/days.test.ts',
  'test/edge/core/firmware.test.ts',
  'test/edge/core/crash.test.ts',
]

/**
 * Test files that take a quarter of a minute or more each, the longest of each list first. They run with `TEST_LONG=1`, as in
 * `.ci/run`.
 */
export const long: readonly string[] = [...busy, ...waiting]

/** Whether this run includes the long tests. */
export const isLongRun = process.env['TEST_LONG'] === '1'

/** Test files that this run leaves out. */
export const leftOut: readonly string[] = isLongRun ? [] : long
