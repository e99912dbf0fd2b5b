import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { say } from '../../../protocol/ui/notices.tsx'
import { openCardForm, setFormAmount } from './card-form.ts'
import { words } from './language.ts'
import { isNewCard, isSaved, method, type Way } from './payment.ts'
import { hub } from './store.ts'

interface Sum {
  /** Cents. */
  amount: number
  currency: string
}

function CardForm({ amount, currency }: Sum): JSX.Element {
  const at = useRef<HTMLDivElement>(null)
  const [isLoading, setLoading] = useState(true)
  useEffect(() => {
    const key = hub.value?.cards.publishable_key
    if (!key) return undefined
    const closed = new AbortController()
    // A cart that is not shown loads no script.
    const seen = new IntersectionObserver(([entry]) => {
      if (!entry?.isIntersecting) return
      seen.disconnect()
      openCardForm(at.current!, { key, amount, currency, signal: closed.signal })
        .catch((error: Error) => say(error.message, true))
        .finally(() => setLoading(false))
    })
    seen.observe(at.current!)
    return () => {
      seen.disconnect()
      closed.abort()
    }
  }, [])
  useEffect(() => setFormAmount(amount), [amount])
  return (
    <>
      {isLoading && <p class="quiet">{words().card_form}</p>}
      <div ref={at} data-card-form />
    </>
  )
}

/** The choice of a way to pay, with the form for a new card. */
export function Ways({
  ways,
  title,
  canSave,
  ...sum
}: Sum & { ways: Way[]; title: string; canSave?: boolean }) {
  const chosen = ways.find(([way]) => way === method.value)?.[0] ?? ways[0]?.[0]
  useEffect(() => void (method.value = chosen ?? ''), [chosen])
  return (
    <>
      <fieldset class="grid">
        <legend class="font-medium">{title}</legend>
        {ways.map(([way, label]) => (
          <label key={way} class="flex items-center gap-3 min-h-11">
            <input
              type="radio"
              name="method"
              class="radio"
              checked={way === chosen}
              onChange={() => (method.value = way)}
            />
            {label}
          </label>
        ))}
      </fieldset>
      {chosen === 'stripe' && <CardForm {...sum} />}
      {canSave && isNewCard(chosen) && (
        <label class="flex items-center gap-3 min-h-11">
          <input
            type="checkbox"
            class="checkbox"
            checked={isSaved.value}
            onChange={(event) => (isSaved.value = event.currentTarget.checked)}
          />
          {words().save_card}
        </label>
      )}
    </>
  )
}
