import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** Maximum number of characters of an error in the list. */
const SHOWN = 1500

/**
 * Lists at the end of a run each test that failed, and each that passed only at its second attempt, with the errors of
 * all its attempts, shortened: a long difference can hide the first one. The run passes with second tries, but such a
 * test has a defect that must be fixed: on GitHub it is also a warning of the run.
 */
export class SecondTryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const all = modules.flatMap((module) => [...module.children.allTests()])
    const failed = all.filter((test) => test.result().state === 'failed')
    const flaky = all.filter((test) => test.diagnostic()?.flaky)
    if (failed.length > 0) console.log(`${failed.length} failed:`)
    for (const test of failed) console.log(described(test))
    if (flaky.length > 0) console.log(`${flaky.length} passed only at the second try and must be fixed:`)
    for (const test of flaky) {
      console.log(described(test))
      if (process.env['GITHUB_ACTIONS'] === 'true')
        console.log(`::warning file=${test.module.relativeModuleId}::second try: ${test.fullName}`)
    }
  }
}

const described = (test: TestCase): string =>
  [
    `${test.module.relativeModuleId}:${test.location?.line ?? 1} > ${test.fullName}`,
    ...(test.result().errors ?? []).map(({ stack, message }) => (stack ?? message).slice(0, SHOWN)),
  ].join('\n')
