/**
 * Test files that take half a minute or more each, the longest first. They run with `TEST_LONG=1`, as in
 * `.ci/run`.
 */
export const long: readonly string[] = [
  'test/simulation/mutants-noticed.test.ts',
  'test/process/money-kill.test.ts',
  'test/process/owners-are-notified.test.ts',
  'test/process/scenarios.test.ts',
  'test/process/chaos.test.ts',
  'test/process/upgrade.test.ts',
  'test/process/rotation.test.ts',
  'test/process/updates.test.ts',
  'test/process/restored-cloud.test.ts',
  'test/process/board-test.test.ts',
  'test/simulation/swarm.test.ts',
  'test/contract/sensor-faults.test.ts',
  'test/browser/acceptance-touches.test.ts',
  'test/browser/commissioning.test.ts',
  'test/browser/refill.test.ts',
  'test/process/abuse.test.ts',
  'test/process/silent-connections.test.ts',
  'test/browser/journeys.test.ts',
  'test/browser/owner-console.test.ts',
  'test/browser/shop.test.ts',
  'test/browser/shop-cards.test.ts',
  'test/browser/outages.test.ts',
  'test/process/crowds.test.ts',
  'test/process/proxies.test.ts',
  'test/browser/hub-page.test.ts',
  'test/browser/hub-page-people.test.ts',
  'test/process/storage-fails.test.ts',
  'test/process/operating.test.ts',
  'test/process/cut-off.test.ts',
  'test/browser/docs.test.ts',
  'test/process/package.test.ts',
  'test/browser/console.test.ts',
  'test/process/webhook-kill.test.ts',
  'test/process/management/over-ssh.test.ts',
  'test/process/stopping.test.ts',
  'test/process/database-fails.test.ts',
  'test/process/postgres-server.test.ts',
  'test/process/postgres-versions.test.ts',
  'test/process/pgbouncer.test.ts',
  'test/process/two-clouds.test.ts',
]

/** Test files that this run leaves out. */
export const leftOut: readonly string[] = process.env['TEST_LONG'] === '1' ? [] : long
