import type { Reporter, TestModule } from 'vitest/node'

/** Names at the end of a run what passed at its second try only, with what the first one said: a finding, though not a red one. */
export class SecondTryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules)
      for (const test of module.children.allTests('passed')) {
        if (!test.diagnostic()?.flaky) continue
        const said = (test.result().errors ?? []).map(({ stack, message }) => stack ?? message)
        console.log(
          `Passed at the second try only: ${module.relativeModuleId} > ${test.fullName}\n${said.join('\n')}`,
        )
      }
  }
}
