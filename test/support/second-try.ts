import type { Reporter, TestCase, TestModule } from 'vitest/node'

/**
 * Lists at the end of a run each test that passed only at its second attempt, with the error of the first one.
 * The run passes, but the listed test has a defect that must be fixed: on GitHub it is also a warning of the run.
 */
export class SecondTryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const flaky = modules.flatMap((module) =>
      [...module.children.allTests('passed')].filter((test) => test.diagnostic()?.flaky),
    )
    if (flaky.length > 0) console.log(`${flaky.length} passed only at the second try and must be fixed:`)
    for (const test of flaky) {
      const place = `${test.module.relativeModuleId}:${test.location?.line ?? 1}`
      console.log(`${place} > ${test.fullName}\n${firstErrors(test).join('\n')}`)
      if (process.env['GITHUB_ACTIONS'] === 'true')
        console.log(`::warning file=${test.module.relativeModuleId}::second try: ${test.fullName}`)
    }
  }
}

const firstErrors = (test: TestCase): string[] =>
  (test.result().errors ?? []).map(({ stack, message }) => stack ?? message)
