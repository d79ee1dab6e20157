"""The Streamlit app, its HTTP routes, the command line and job launching."""
