"""Signing in, with its limit. Out and the way back from a lost password are Django's own views."""

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpResponse

from projects.forms import SignInForm

RETRY_AFTER_S = 60


class SignInView(LoginView):
    """The sign-in page. Unknown names and wrong passwords read the same and take as long."""

    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if isinstance(form, SignInForm) and form.is_limited:
            response.status_code = 429
            response["Retry-After"] = str(RETRY_AFTER_S)
        return response
