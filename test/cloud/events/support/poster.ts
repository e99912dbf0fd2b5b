import { HttpPoster, type Posted, type Poster } from '../../../../cloud/events/webhooks/post.ts'
import type { Clock } from '../../../../protocol/model/runtime.ts'

export interface Sent {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** Scripted receivers. Addresses are judged as usual, and every host name is public. */
export interface ScriptedPoster extends Poster {
  sent: Sent[]
  answer: (sent: Sent) => Posted | 'stopped' | Promise<Posted>
}

export function scriptedPoster(clock: Clock): ScriptedPoster {
  const judge = new HttpPoster({
    clock,
    timeoutMs: 15_000,
    allowHttp: false,
    allowPrivate: false,
    resolve: () => Promise.resolve([{ address: '93.184.216.34', family: 4 }]),
  })
  const scripted: ScriptedPoster = {
    rules: judge.rules,
    refusal: (url) => judge.refusal(url),
    stop: () => judge.stop(),
    sent: [],
    answer: () => ({ status: 200 }),
    async post(url, headers, body) {
      const sent = { url, headers, body }
      scripted.sent.push(sent)
      return scripted.answer(sent)
    },
  }
  return scripted
}
