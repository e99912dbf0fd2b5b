import { escapeHtml } from '../../platform/http/plain-page.ts'
import type { Receipt } from '../../../protocol/contract/receipt.ts'

/** A receipt as a page to print. */
export function receiptPage(receipt: Receipt): string {
  const money = (cents: number): string => `${(cents / 100).toFixed(2)} ${receipt.currency}`
  const row = (...cells: (string | number)[]): string =>
    `<tr>${cells.map((cell) => `<td>${escapeHtml(String(cell))}</td>`).join('')}</tr>`
  const { hub } = receipt
  const address = [hub.street_address_1, hub.street_address_2, hub.city, hub.state].filter(Boolean).join(', ')
  const number = escapeHtml(receipt.receipt_number)
  const items = receipt.items.map(({ name, qty, price, line_total, refunded_quantity }) =>
    row(
      refunded_quantity > 0 ? `${name} (${refunded_quantity} refunded)` : name,
      qty,
      money(price),
      money(line_total),
    ),
  )
  const payments = receipt.payments.map(({ type, brand, last4, amount }) =>
    row(['Paid:', type, brand, last4].filter(Boolean).join(' '), money(amount)),
  )
  const refunds = receipt.refunds.map(({ status, created_at, amount }) =>
    row(`Refund of ${created_at.slice(0, 10)} (${status})`, money(-amount)),
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Receipt ${number}</title>
</head>
<body>
<h1>Receipt ${number}</h1>
<p>${escapeHtml(receipt.seller)}<br>${escapeHtml(hub.name)}<br>${escapeHtml(address)}<br>${receipt.paid_at}</p>
<table>
<thead><tr><th>Product</th><th>Units</th><th>Price</th><th>Total</th></tr></thead>
<tbody>${items.join('')}</tbody>
</table>
<table>
${row('Discount', money(-receipt.discount_total))}
${row(`Tax (${receipt.tax_rate} %)`, money(receipt.tax_total))}
${row('Total', money(receipt.total))}
${payments.join('')}${refunds.join('')}
</table>
</body>
</html>
`
}
