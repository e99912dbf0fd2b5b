export interface LinesToTry {
  baseUrl: string
  simulatorUrl: string
  hubId: number
  productId: number
  /** The customer: a guest's identity. */
  subject: string
}

/**
 * Commands for a POSIX shell with curl, in order: each works as printed after those before it, and may be repeated. They
 * take one order from a guest's cart to COMPLETED.
 */
export function linesToTry({ baseUrl, simulatorUrl, hubId, productId, subject }: LinesToTry) {
  const bearer = '-H "Authorization: Bearer $T"'
  /** `--json` is not known before curl 7.82. */
  const json = (body: string) => `-H 'Content-Type: application/json' -d ${body}`
  /** Keeps one field of a JSON answer in a variable. */
  const keep = (variable: string, request: string, field: string) =>
    `${variable}=$(curl -sS ${request} | grep -o '"${field}":"\\?[^",}]*' | head -1 | sed 's/.*[:"]//')`
  /** Asked again each second while it is refused: the hub needs some seconds to dispense. */
  const patiently = '--fail --retry 60 --retry-delay 1 --retry-all-errors 2>/dev/null'
  const order = `"${baseUrl}/users/$U/orders/$O`
  const simulated = `${simulatorUrl}/api/hubs/${hubId}`
  /** Whose answer is for eyes. */
  const show = (request: string) => `curl -sS -w '\\n' ${request}`

  return {
    cart: [
      keep(
        'T',
        `${json(`'{"sub":"${subject}","anonymous":true}'`)} ${baseUrl}/demo/identity/token`,
        'access_token',
      ),
      keep('U', `-X POST ${bearer} ${baseUrl}/users/user/bootstrap/guest`, 'user_id'),
      keep('O', `-X POST ${bearer} "${baseUrl}/users/$U/orders?hub_id=${hubId}"`, 'order_id'),
      show(
        `-X PUT ${bearer} ${json(`'{"product_id":${productId},"quantity":2}'`)} ${order}/order_item?hub_id=${hubId}"`,
      ),
    ],
    pay: [
      show(
        `${bearer} ${json('"{\\"order_id\\":$O,\\"payment_method_id\\":\\"pm_card_visa\\"}"')} ${baseUrl}/users/payments/pay`,
      ),
    ],
    collect: [
      keep('B', `${patiently} -X POST ${bearer} ${order}/open-delivery?hub_id=${hubId}"`, 'bin_number'),
      show(`${json('"{\\"action\\":\\"take_items\\",\\"target\\":\\"bin-$B\\"}"')} ${simulated}/act`),
    ],
    look: [show(`${bearer} ${order}?hub_id=${hubId}"`), show(`${simulated}/actuations`)],
  }
}

export function formatLinesToTry(lines: ReturnType<typeof linesToTry>): string {
  const part = (title: string, commands: readonly string[]) => [`# ${title}`, ...commands, '']
  return [
    ...part('1. A guest fills a cart', lines.cart),
    ...part('2. and pays: the hub dispenses', lines.pay),
    ...part('3. When all has dropped the bin opens, and hands take the items', lines.collect),
    ...part('The hub closes the bin, and the order is COMPLETED; all that really moved', lines.look),
  ].join('\n')
}
